#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"

namespace capstan::checkpoint {

// A tensor, or a part of one where servers cut it, in one of a checkpoint's files.
struct Piece {
  std::string file;
  std::string key;             // its name in the file
  std::string array;           // "weights", "statistics", or one of the optimizer's
  std::string tensor;          // whose values these are
  Range elements;              // of the tensor in arena order; a whole tensor is in the file in C order
  std::uint64_t checksum = 0;  // XXH3 of the values as 32-bit floats, in the order of the file
  friend bool operator==(const Piece&, const Piece&) = default;
};

// The newest push of one life of a worker that is part of the weights, or finally dropped.
struct HighWaterMark {
  WorkerId worker;
  Incarnation incarnation;
  Sequence sequence;
  std::uint32_t group = 0;  // in which, where tensors are in groups
  friend bool operator==(const HighWaterMark&, const HighWaterMark&) = default;
};

// How far a group of tensors has come, and which one it is: "default", or the glob of its names.
struct GroupVersion {
  std::string group;
  Version version;
  friend bool operator==(const GroupVersion&, const GroupVersion&) = default;
};

// What a checkpoint is: everything a run needs to go on that is not an array of floats, and where the arrays
// are.
struct Manifest {
  Version version;
  std::vector<TensorShape> parameters;
  std::vector<TensorShape> buffers;  // batch-norm buffers, mean over the workers
  std::string strategy;
  std::string optimizer;           // "sgd"
  std::vector<std::string> state;  // names of its arrays
  std::string schedule;            // "cosine"
  double learning_rate = 0;        // with which the next update would be made
  std::uint64_t samples = 0;       // of the training set; 0 where the job has none
  std::uint64_t seed = 0;
  std::uint64_t trained_samples = 0;  // that have become part of the weights, each as often as it did
  std::vector<DataSegment> segments;
  std::vector<GroupVersion> groups = {};  // where there are several, the default first
  std::vector<HighWaterMark> marks;
  std::vector<Piece> pieces;
  friend bool operator==(const Manifest&, const Manifest&) = default;

  // The version and the marks of each of these groups, by group. Where they are not the groups of the
  // checkpoint, each begins with what the job, which is group 0, has reached.
  std::vector<Version> versions_of(const std::vector<std::string>& names) const;
  std::vector<HighWaterMark> marks_of(const std::vector<std::string>& names) const;
};

// Throws UserError where a manifest lacks a piece of a tensor, or has one twice.
void check_complete(const Manifest& manifest);

// JSON that carries a checksum of itself.
std::string to_json(const Manifest& manifest);
// Throws UserError that names the file and the fault; every index and range is checked, and
// that every element of every array is somewhere, once.
Manifest parse_manifest(const std::string& text, const std::string& name);

}  // namespace capstan::checkpoint
