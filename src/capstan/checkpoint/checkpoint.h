#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capstan/checkpoint/manifest.h"

namespace capstan::checkpoint {

// A checkpoint is a folder: files of tensors, some per server, and manifest.json, which is written last, so
// that a folder with a manifest is complete.
inline constexpr const char* kManifestFile = "manifest.json";

// One array of floats by name.
struct NamedArray {
  std::string name;
  std::span<float> values;
};

// One server's share of a model at one version, in memory that is the writer's own.
struct Shard {
  std::uint32_t server = 0;
  std::uint32_t servers = 1;
  Range range;                     // of the flat array
  std::vector<NamedArray> arrays;  // each of the whole range; the weights first
  FlatLayout buffers_layout;       // of the first server; empty elsewhere
  std::span<const float> buffers;
};

// A buffer that PyTorch keeps as a 64-bit integer.
bool is_counter(const std::string& name);

// Writes the shard's files into the folder and says what is where. Reorders the arrays in place: they are
// of no use afterwards. Throws UserError where it cannot.
std::vector<Piece> write_shard(const std::filesystem::path& folder, const FlatLayout& layout, Shard& shard);
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// Throws UserError that names the file and the fault.
Manifest read_manifest(const std::filesystem::path& folder);
// Reads every file of the checkpoint and compares every checksum. Throws UserError that names the file and
// the fault.
void verify(const std::filesystem::path& folder, const Manifest& manifest);

// Fills each array, named as in the manifest, with the elements `range` of the model's flat array; zeros
// where no tensor lies. Throws as verify() does for what it reads.
void load(const std::filesystem::path& folder, const Manifest& manifest, Range range,
          std::span<const NamedArray> arrays);
// The buffers in flat order, empty where there are none.
std::vector<float> load_buffers(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace capstan::checkpoint
