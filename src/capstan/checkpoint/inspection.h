#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/checkpoint/manifest.h"

namespace capstan::checkpoint {

// What is in a checkpoint, a run or a file of tensors: text for people, and an object for programs. The types
// are values. The functions read files, and throw UserError that names the file and the fault where they
// cannot; they are thread-safe.

// One line about a tensor's values. What is not finite is counted and otherwise left out.
struct TensorSummary {
  std::string name;
  std::vector<std::int64_t> dims;
  double mean = 0, deviation = 0;
  std::uint64_t not_finite = 0;

  TensorSummary(std::string tensor, std::vector<std::int64_t> shape, std::span<const float> values);
  Json json() const;
};

struct CheckpointInspection {
  std::filesystem::path folder;
  Manifest manifest;
  std::uint64_t bytes = 0;             // on disk
  std::vector<TensorSummary> tensors;  // parameters, then buffers
  std::filesystem::path exported_to;   // empty if nothing was

  bool good() const { return true; }  // a damaged one throws
  std::string text() const;
  Json json() const;
};
// Compares every checksum. Where `export_to` is not empty, writes the model to it, as write_model() does,
// with the aliases of the checkpoint's run.
CheckpointInspection inspect_checkpoint(const std::filesystem::path& folder,
                                        const std::filesystem::path& export_to = {});

struct RunInspection {
  struct Row {
    Version version;
    std::filesystem::path folder;
    std::uint64_t bytes = 0;  // on disk
    std::string fault;        // empty if every checksum fits
  };
  std::filesystem::path run;
  std::vector<Row> checkpoints;  // the oldest first
  bool finished = false;

  bool good() const;  // all of them are
  std::string text() const;
  Json json() const;
};
// Compares every checksum of every checkpoint.
RunInspection inspect_run(const std::filesystem::path& run);

struct FileInspection {
  std::filesystem::path file;
  std::uint64_t values = 0;  // of all tensors
  std::vector<TensorSummary> tensors;

  bool good() const { return true; }  // a damaged one throws
  std::string text() const;
  Json json() const;
};
FileInspection inspect_file(const std::filesystem::path& safetensors);

}  // namespace capstan::checkpoint
