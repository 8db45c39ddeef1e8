#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"

namespace capstan::data {

// How one epoch of a dataset is divided among workers. A global batch is workers · batch consecutive
// entries of the epoch's order, and each worker takes its contiguous part in rank order: N workers with
// batch B see exactly what one worker with batch N·B sees.
struct Partition {
  std::uint64_t samples = 0;
  std::uint64_t workers = 1;
  std::uint64_t batch = 1;  // per worker

  std::uint64_t steps_per_epoch() const;
  // Places in the epoch's order that `rank` takes at `step`. The last, partial global batch is divided as
  // evenly as possible, so that a worker may get nothing.
  Range slice(std::uint64_t step, std::uint64_t rank) const;
};

// The order of the samples in one epoch; the same for the same arguments on every machine.
std::vector<std::uint32_t> epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);

// One worker's batches. Keeps the current epoch's order. Not thread-safe.
class Sampler {
 public:
  Sampler(const Partition& partition, std::uint64_t rank, std::uint64_t seed);

  std::uint64_t steps_per_epoch() const { return partition_.steps_per_epoch(); }
  // Sample indices; valid until a batch of another epoch is asked for.
  std::span<const std::uint32_t> batch(std::uint64_t epoch, std::uint64_t step);

 private:
  Partition partition_;
  std::uint64_t rank_;
  std::uint64_t seed_;
  std::optional<std::uint64_t> epoch_;
  std::vector<std::uint32_t> order_;
};

}  // namespace capstan::data
