#include "capstan/data/partition.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "capstan/base/random.h"

namespace capstan::data {
namespace {

using Indices = std::vector<std::uint32_t>;

constexpr std::uint64_t kSamples[] = {1, 2, 7, 64, 65, 100, 1438};
constexpr std::uint64_t kWorkers[] = {1, 2, 3, 5, 8};
constexpr std::uint64_t kBatches[] = {1, 3, 32};

template <class Body>
void for_many(Body body) {
  for (const auto samples : kSamples) {
    for (const auto workers : kWorkers) {
      for (const auto batch : kBatches) {
        SCOPED_TRACE(testing::Message() << samples << " samples, " << workers << " workers, batch " << batch);
        body(Partition{samples, workers, batch});
      }
    }
  }
}

// The samples of all workers in one step, in rank order.
Indices all_workers(const Partition& partition, std::uint64_t seed, std::uint64_t epoch, std::uint64_t step) {
  Indices seen;
  for (std::uint64_t rank = 0; rank < partition.workers; ++rank) {
    Sampler sampler(partition, rank, seed);
    const auto batch = sampler.batch(epoch, step);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  return seen;
}

TEST(Partition, EverySampleIsUsedExactlyOncePerEpoch) {
  for_many([](const Partition& partition) {
    Indices seen;
    for (std::uint64_t step = 0; step < partition.steps_per_epoch(); ++step) {
      const auto part = all_workers(partition, 5, 2, step);
      seen.insert(seen.end(), part.begin(), part.end());
    }
    std::sort(seen.begin(), seen.end());
    Indices expected(partition.samples);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(seen, expected);
  });
}

TEST(Partition, WorkersTogetherUseTheSamplesOfOneGlobalBatch) {
  for_many([](const Partition& partition) {
    const Partition one{partition.samples, 1, partition.workers * partition.batch};
    ASSERT_EQ(partition.steps_per_epoch(), one.steps_per_epoch());
    for (std::uint64_t step = 0; step < one.steps_per_epoch(); ++step) {
      EXPECT_EQ(all_workers(partition, 9, 1, step), all_workers(one, 9, 1, step)) << "step " << step;
    }
  });
}

TEST(Partition, FullBatchesAreEqualAndPartialOnesDifferByAtMostOne) {
  for_many([](const Partition& partition) {
    for (std::uint64_t step = 0; step < partition.steps_per_epoch(); ++step) {
      std::uint64_t least = partition.batch, most = 0;
      for (std::uint64_t rank = 0; rank < partition.workers; ++rank) {
        least = std::min(least, partition.slice(step, rank).size());
        most = std::max(most, partition.slice(step, rank).size());
      }
      EXPECT_LE(most, partition.batch);
      EXPECT_LE(most - least, 1u);
      const bool whole = step + 1 < partition.steps_per_epoch();
      EXPECT_TRUE(!whole || least == partition.batch);
    }
  });
}

TEST(Partition, StepsAreRoundedUp) {
  EXPECT_EQ((Partition{1438, 2, 32}.steps_per_epoch()), 23u);
  EXPECT_EQ((Partition{128, 2, 32}.steps_per_epoch()), 2u);
  EXPECT_EQ((Partition{129, 2, 32}.steps_per_epoch()), 3u);
}

TEST(Partition, TheOrderDependsOnSeedAndEpochOnly) {
  const auto order = epoch_order(1000, 1, 0);
  EXPECT_EQ(order, epoch_order(1000, 1, 0));
  EXPECT_NE(order, epoch_order(1000, 1, 1));
  EXPECT_NE(order, epoch_order(1000, 2, 0));
}

// Over many epochs each sample is equally often at each position: chi-square with 5·5 = 25 degrees of freedom
// (6x6 table with fixed margins) exceeds 60 by chance for one seed in 10,000, and the seed is fixed.
TEST(Partition, TheOrderIsUniform) {
  constexpr int kEpochs = 6000, kPlaces = 6;
  double counts[kPlaces][kPlaces] = {};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = epoch_order(kPlaces, 3, static_cast<std::uint64_t>(epoch));
    for (int place = 0; place < kPlaces; ++place) counts[place][order[static_cast<std::size_t>(place)]] += 1;
  }
  double chi_square = 0;
  const double expected = double{kEpochs} / kPlaces;
  for (const auto& row : counts) {
    for (const auto n : row) chi_square += (n - expected) * (n - expected) / expected;
  }
  EXPECT_LT(chi_square, 60);
}

TEST(Sampler, ServesEpochsInAnyOrder) {
  const Partition partition{100, 2, 8};
  Sampler sampler(partition, 1, 4);
  for (const std::uint64_t epoch : {0, 1, 0, 7}) {
    const auto order = epoch_order(100, 4, epoch);
    const auto slice = partition.slice(3, 1);
    const auto batch = sampler.batch(epoch, 3);
    EXPECT_EQ(Indices(batch.begin(), batch.end()),
              Indices(order.begin() + static_cast<std::ptrdiff_t>(slice.begin),
                      order.begin() + static_cast<std::ptrdiff_t>(slice.end)));
  }
}

// ---- resuming ----

TEST(Sampler, ResumesExactlyWhereAllWorkersStopped) {
  for_many([](const Partition& partition) {
    const std::uint64_t stopped = partition.steps_per_epoch() + partition.steps_per_epoch() / 2;
    for (std::uint64_t rank = 0; rank < partition.workers; ++rank) {
      Sampler whole(partition, rank, 3);
      Sampler resumed(partition, rank, 3,
                      {{partition.batch, std::vector<std::uint64_t>(partition.workers, stopped)}});
      for (std::uint64_t step = 0; step < 2 * partition.steps_per_epoch(); ++step) {
        const auto was = whole.place(stopped + step), is = resumed.place(step);
        EXPECT_EQ(was.epoch, is.epoch);
        const auto expected = whole.batch(was.epoch, was.step), got = resumed.batch(is.epoch, is.step);
        ASSERT_EQ(Indices(expected.begin(), expected.end()), Indices(got.begin(), got.end()));
      }
      EXPECT_EQ(whole.total_steps(5) - stopped, resumed.total_steps(5));
    }
  });
}

// The samples of `steps` steps of each worker, in any order among workers.
void walk(const std::vector<DataSegment>& earlier, const DataSegment& segment, std::uint64_t samples,
          std::vector<Indices>& seen_by_epoch) {
  for (std::uint64_t rank = 0; rank < segment.workers(); ++rank) {
    Sampler sampler({samples, segment.workers(), segment.batch}, rank, 8, earlier);
    for (std::uint64_t step = 0; step < segment.steps[rank]; ++step) {
      const auto [epoch, at] = sampler.place(step);
      const auto batch = sampler.batch(epoch, at);
      if (seen_by_epoch.size() <= epoch) seen_by_epoch.resize(epoch + 1);
      seen_by_epoch[epoch].insert(seen_by_epoch[epoch].end(), batch.begin(), batch.end());
    }
  }
}

TEST(Sampler, ResumesWithEverySampleOnceAfterWorkersStoppedAtDifferentSteps) {
  constexpr std::uint64_t kEpochs = 5;
  Random random(77);
  for (int round = 0; round < 200; ++round) {
    const auto samples = 1 + random.below(300);
    SCOPED_TRACE(testing::Message() << "round " << round << ", " << samples << " samples");
    std::vector<DataSegment> segments;
    std::vector<Indices> seen;
    for (int i = 0; i < 3; ++i) {
      DataSegment segment{1 + random.below(20), std::vector<std::uint64_t>(1 + random.below(4))};
      const Sampler left({samples, segment.workers(), segment.batch}, 0, 8, segments);
      // The last segment runs to the end; in the others each worker stops at a random step.
      for (auto& steps : segment.steps)
        steps = i == 2 ? left.total_steps(kEpochs) : random.below(left.total_steps(kEpochs) + 1);
      walk(segments, segment, samples, seen);
      segments.push_back(segment);
    }
    ASSERT_EQ(seen.size(), kEpochs);
    for (auto& epoch : seen) {
      Indices expected(samples);
      std::iota(expected.begin(), expected.end(), 0u);
      std::ranges::sort(epoch);
      EXPECT_EQ(epoch, expected);
    }
  }
}

// As one worker's steps after a long run, or by mistake. The time depends on segments and workers only.
TEST(Sampler, ResumesAfterAnyNumberOfSteps) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 48;
  const std::vector<DataSegment> earlier = {{2, {3, kFar}}, {5, {kFar - 7}}};
  // 8 samples: 2 steps per epoch for 2 workers of batch 2. Epoch 0 is done by both workers. In epoch 1,
  // worker 0 has done the first of its two steps; after that, its half of each epoch is left to the second
  // segment.
  const Remainder after_one(8, {earlier[0]});
  EXPECT_EQ(after_one.samples(0), 0u);
  EXPECT_EQ(after_one.samples(1), 2u);
  EXPECT_EQ(after_one.samples(2), 4u);
  EXPECT_EQ(after_one.samples(kFar / 2 - 1), 4u);
  EXPECT_EQ(after_one.samples(kFar / 2), 8u);
  EXPECT_EQ(after_one.first_whole_epoch(), kFar / 2);
  EXPECT_EQ(after_one.order(1, kFar / 2 - 1).size(), 4u);
  // One step per epoch up to there for a batch of 5, then two.
  const auto steps = kFar - 7 - (kFar / 2 - 1);
  Sampler sampler({8, 1, 8}, 0, 1, earlier);
  EXPECT_EQ(sampler.steps(0), 0u);
  EXPECT_EQ(sampler.steps(kFar / 2 - 1), 0u);
  EXPECT_EQ(sampler.steps(kFar / 2 + steps / 2 - 1), 0u);
  EXPECT_EQ(sampler.steps(kFar / 2 + steps / 2), 1u);
  EXPECT_EQ(sampler.batch(kFar / 2 + steps / 2, 0).size(), steps % 2 == 0 ? 8u : 3u);
  EXPECT_EQ(sampler.place(0).epoch, kFar / 2 + steps / 2);
  EXPECT_EQ(sampler.total_steps(kFar), kFar - kFar / 2 - steps / 2);
}

TEST(Partition, DescribesAnUnevenEpoch) {
  EXPECT_EQ(describe_uneven({1437, 2, 32}),
            "1,437 samples ÷ (2 × 32): 23 steps per epoch, the last with 29 samples");
  EXPECT_EQ(describe_uneven({1'281'167, 8, 32}),
            "1,281,167 samples ÷ (8 × 32): 5,005 steps per epoch, the last with 143 samples");
  EXPECT_EQ(describe_uneven({66, 4, 8}),
            "66 samples ÷ (4 × 8): 3 steps per epoch, the last with 2 samples, none for 2 of the workers");
  EXPECT_EQ(describe_uneven({5, 1, 8}), "5 samples ÷ (1 × 8): 1 step per epoch, it with 5 samples");
  EXPECT_EQ(describe_uneven({9, 1, 8}), "9 samples ÷ (1 × 8): 2 steps per epoch, the last with 1 sample");
  EXPECT_EQ(describe_uneven({1000, 5, 50}), "");
}

using Samples = std::vector<std::uint32_t>;

Samples counting(std::uint32_t samples) {
  Samples list(samples);
  for (std::uint32_t i = 0; i < samples; ++i) list[i] = i;
  return list;
}

TEST(Sampler, InTheSplitsOwnOrderDealsConsecutiveBatches) {
  for (const std::uint64_t epoch : {0u, 1u}) {
    Sampler first({10, 2, 2}, 0, 7, {}, SampleOrder::kOwn), second({10, 2, 2}, 1, 7, {}, SampleOrder::kOwn);
    const auto batch = [&](Sampler& sampler, std::uint64_t step) {
      const auto samples = sampler.batch(epoch, step);
      return Samples(samples.begin(), samples.end());
    };
    EXPECT_EQ(batch(first, 0), (Samples{0, 1}));
    EXPECT_EQ(batch(second, 0), (Samples{2, 3}));
    EXPECT_EQ(batch(first, 1), (Samples{4, 5}));
    EXPECT_EQ(batch(second, 1), (Samples{6, 7}));
    EXPECT_EQ(batch(first, 2), (Samples{8}));
    EXPECT_EQ(batch(second, 2), (Samples{9}));
  }
}

TEST(Columns, GiveEachPlaceConsecutiveSamples) {
  EXPECT_EQ(in_columns(counting(6), 2), (Samples{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(in_columns(counting(7), 3), (Samples{0, 3, 5, 1, 4, 6, 2})) << "columns of 3, 2 and 2";
  EXPECT_EQ(in_columns(counting(2), 4), (Samples{0, 1}));
  EXPECT_EQ(in_columns({}, 4), Samples{});
}

// Every sample once, and every place of the global batch visits consecutive samples.
TEST(Columns, AreDividedAmongWorkers) {
  for (const std::uint64_t samples : {1u, 23u, 24u, 25u, 100u}) {
    constexpr std::uint64_t kRanks = 3, kPlaces = 4;
    std::vector<int> seen(samples);
    for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
      Sampler sampler({samples, kRanks, kPlaces}, rank, 7, {}, SampleOrder::kColumns);
      Samples before;
      for (std::uint64_t step = 0; step < sampler.steps(0); ++step) {
        const auto batch = sampler.batch(0, step);
        for (const auto s : batch) ++seen[s];
        const bool is_whole = batch.size() == kPlaces && before.size() == kPlaces;
        for (std::size_t i = 0; is_whole && step + 1 < sampler.steps(0) && i < kPlaces; ++i)
          EXPECT_EQ(batch[i], before[i] + 1);
        before.assign(batch.begin(), batch.end());
      }
    }
    EXPECT_EQ(seen, std::vector<int>(samples, 1)) << samples;
  }
}

// A run that resumes with the same workers and batch size visits what an uninterrupted one would have.
TEST(Columns, ContinueAfterAResume) {
  constexpr std::uint64_t kAll = 50;
  for (std::uint64_t done = 0; done < 7; ++done) {
    Sampler whole({kAll, 2, 4}, 1, 7, {}, SampleOrder::kColumns);
    Sampler rest({kAll, 2, 4}, 1, 7, {{4, {done, done}}}, SampleOrder::kColumns);
    ASSERT_EQ(rest.steps(0), whole.steps(0) - done);
    for (std::uint64_t step = 0; step < rest.steps(0); ++step) {
      const auto expected = whole.batch(0, done + step), found = rest.batch(0, step);
      EXPECT_TRUE(std::ranges::equal(found, expected)) << done << " " << step;
    }
  }
}

}  // namespace
}  // namespace capstan::data
