#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/layout.h"
#include "capstan/samples.h"

namespace capstan::data {

// How one epoch of a dataset is divided among workers. A global batch is workers · batch consecutive entries
// of the epoch's order, and each worker takes a contiguous part, in rank order: N workers with batch B
// process the same samples per step as one worker with batch N·B.
struct Partition {
  std::uint64_t samples = 0;
  std::uint64_t workers = 1;
  std::uint64_t batch = 1;  // per worker

  std::uint64_t steps_per_epoch() const;
  // The positions in the epoch's order that `rank` takes at `step`. The last, partial global batch is divided
  // as evenly as possible, so that a worker may get none.
  Range slice(std::uint64_t step, std::uint64_t rank) const;
  // The samples that `rank` takes in the first `steps` steps of an epoch.
  std::uint64_t used(std::uint64_t steps, std::uint64_t rank) const;
};

// One line about the last, partial global batch, such as "1,437 samples ÷ (2 × 32): 23 steps per epoch, the
// last with 29 samples"; empty if all are full.
std::string describe_uneven(const Partition& partition);

// The order of the samples in one epoch; the same for the same arguments on every machine.
std::vector<std::uint32_t> epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);

// Samples in their own order become columns: of a global batch of `width` places, each place visits
// consecutive samples. The last global batch may be partial, so the first columns may be one longer than the
// others.
std::vector<std::uint32_t> in_columns(std::span<const std::uint32_t> samples, std::uint64_t width);

// The samples of each epoch that the segments of a run have not used. The segments must be possible
// (base/data_segment.h). Immutable.
class Remainder {
 public:
  Remainder(std::uint64_t samples, std::vector<DataSegment> segments);

  std::uint64_t samples(std::uint64_t epoch) const;
  // The unused samples in the epoch's order; for kColumns and kOwn, in their own order.
  std::vector<std::uint32_t> order(std::uint64_t seed, std::uint64_t epoch,
                                   SampleOrder order = SampleOrder::kShuffled) const;

  // Consecutive epochs, up to the next run, with the same number of unused samples. The last run is endless.
  struct Run {
    std::uint64_t first_epoch = 0;
    std::uint64_t samples = 0;
  };
  const std::vector<Run>& runs() const { return runs_; }
  // From this epoch on, no sample has been used.
  std::uint64_t first_whole_epoch() const { return runs_.back().first_epoch; }

 private:
  // A run at the begin of one segment.
  struct Stage {
    Run run;
    std::uint64_t first_step = 0;  // of the segment in the run
  };
  void subtract(std::size_t segment);
  Partition partition(std::size_t segment, std::uint64_t samples) const;
  const Stage& stage(std::size_t segment, std::uint64_t epoch) const;
  // Steps of the segment that each worker has computed in this epoch.
  std::vector<std::uint64_t> done_in(std::size_t segment, std::uint64_t epoch) const;

  std::uint64_t whole_;
  std::vector<DataSegment> segments_;
  std::vector<std::vector<Stage>> stages_;  // by segment, by epoch
  std::vector<Run> runs_;                   // by epoch
};

// One worker's batches in the current segment. Caches the current epoch's order. Not thread-safe.
class Sampler {
 public:
  Sampler(const Partition& partition, std::uint64_t rank, std::uint64_t seed,
          std::vector<DataSegment> earlier = {}, SampleOrder kind = SampleOrder::kShuffled);

  // Steps of this segment in an epoch, and in the first `epochs` of them.
  std::uint64_t steps(std::uint64_t epoch) const;
  std::uint64_t total_steps(std::uint64_t epochs) const;
  // The position of a step of the segment.
  struct Place {
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;  // within the epoch
  };
  Place place(std::uint64_t step) const;

  // Sample indices; valid until a batch of another epoch is requested.
  std::span<const std::uint32_t> batch(std::uint64_t epoch, std::uint64_t step);

 private:
  Partition of_epoch(std::uint64_t epoch) const;

  Partition partition_;
  std::uint64_t rank_;
  std::uint64_t seed_;
  SampleOrder kind_;
  Remainder remainder_;
  std::optional<std::uint64_t> epoch_;
  std::vector<std::uint32_t> order_;
};

}  // namespace capstan::data
