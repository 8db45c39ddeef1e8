#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/ids.h"
#include "capstan/base/parameter_groups.h"
#include "capstan/layout.h"

namespace capstan::checkpoint {

// A tensor, or a part of one that is split between servers, in one of a checkpoint's files.
struct Piece {
  std::string file;
  std::string key;             // its name in the file
  std::string array;           // "weights", "statistics" (buffers), or the name of an optimizer state
  std::string tensor;          // its name in the model
  Range elements;              // of the tensor in arena order; a whole tensor is row-major in the file
  std::uint64_t checksum = 0;  // XXH3 of the values as 32-bit floats, in the order of the file
  friend bool operator==(const Piece&, const Piece&) = default;
};

// The newest push of one incarnation of a worker that was applied or dropped.
struct HighWaterMark {
  WorkerId worker;
  Incarnation incarnation;
  Sequence sequence;
  std::uint32_t group = 0;  // base/parameter_groups.h
  friend bool operator==(const HighWaterMark&, const HighWaterMark&) = default;
};

// The version of a parameter group. `group` is its name.
struct GroupVersion {
  std::string group;
  Version version;
  friend bool operator==(const GroupVersion&, const GroupVersion&) = default;
};

// The contents of a checkpoint except its arrays: everything else that a run needs to resume, and where the
// arrays are.
struct Manifest {
  Version version;
  std::vector<TensorShape> parameters;
  std::vector<TensorShape> buffers;  // batch-norm buffers, mean over the workers
  std::string strategy;
  std::string optimizer;           // "sgd"
  std::vector<std::string> state;  // names of its arrays
  std::string schedule;            // "cosine"
  double learning_rate = 0;        // of the next update
  std::uint64_t samples = 0;       // of the training set; 0 if the job has none
  std::uint64_t seed = 0;
  std::uint64_t trained_samples = 0;  // applied to the weights, counting repetitions
  std::vector<DataSegment> segments;
  std::vector<StepPhase> phases = {};     // if a step has several
  std::vector<GroupVersion> groups = {};  // if there are several
  std::vector<HighWaterMark> marks;
  std::vector<Piece> pieces;
  friend bool operator==(const Manifest&, const Manifest&) = default;

  // The versions and marks of these groups. If they are not the checkpoint's groups, each takes those of
  // group 0, the job.
  std::vector<Version> versions_of(const std::vector<std::string>& names) const;
  std::vector<HighWaterMark> marks_of(const std::vector<std::string>& names) const;
};

// Throws UserError unless the pieces cover every element of every array exactly once.
void check_complete(const Manifest& manifest);

// JSON that includes its own checksum.
std::string to_json(const Manifest& manifest);
// Checks every index and range, and check_complete(). Throws UserError that names the file and its error.
Manifest parse_manifest(const std::string& text, const std::string& name);

}  // namespace capstan::checkpoint
