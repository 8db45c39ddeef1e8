#include "capstan/training/batches.h"

#include <semaphore>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/time.h"

namespace capstan::training {
namespace {

using Samples = std::vector<std::uint32_t>;

// A task that only records which samples are requested; without a model.
class Requests : public Task {
 public:
  explicit Requests(SplitInfo info) : info_(info) {}
  const NamedTensors& parameters() const override { return none_; }
  const NamedTensors& buffers() const override { return none_; }
  void train(bool) override {}
  SplitInfo split(Split) const override { return info_; }
  Batch batch(Split split, const BatchRequest& request) override {
    splits.push_back(split);
    epochs.push_back(request.epoch);
    samples.emplace_back(request.samples.begin(), request.samples.end());
    return {{}, {}, {}, request.samples.size()};
  }
  at::Tensor loss(std::size_t, const Batch&) override { return {}; }
  std::vector<Metric> metrics() const override { return {{"loss"}}; }
  std::vector<MetricSum> evaluate(const Batch&) override { return {{}}; }

  std::vector<Split> splits;
  std::vector<std::uint64_t> epochs;
  std::vector<Samples> samples;

 private:
  const SplitInfo info_;
  const NamedTensors none_;
};

TEST(Batches, VisitTheStepsOfASampler) {
  Requests task({10, SampleOrder::kColumns});
  data::Sampler sampler({10, 1, 4}, 0, 5, {}, SampleOrder::kColumns);
  Batches batches(task, sampler, 2, 4, 1);
  EXPECT_EQ(batches.next().samples, 2u);
  EXPECT_EQ(batches.next().samples, 4u);
  EXPECT_EQ(task.epochs, (std::vector<std::uint64_t>{0, 1}));
  // Columns of 3, 3, 2 and 2 samples.
  EXPECT_EQ(task.samples, (std::vector<Samples>{{2, 5}, {0, 3, 6, 8}}));
  EXPECT_THAT(task.splits, ::testing::Each(Split::kTrain));
}

TEST(Batches, VisitTheTestSplitOnceInItsOwnOrderOrInColumns) {
  Requests in_order({5, SampleOrder::kShuffled}), in_columns({5, SampleOrder::kColumns});
  for (auto* task : {&in_order, &in_columns}) {
    Batches batches(*task, 2, 1);
    for (int i = 0; i < 3; ++i) batches.next();
    EXPECT_THAT(task->splits, ::testing::Each(Split::kTest));
  }
  EXPECT_EQ(in_order.samples, (std::vector<Samples>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(in_columns.samples, (std::vector<Samples>{{0, 3}, {1, 4}, {2}}));
}

// Blocks a request until it is released.
class Blocking final : public Requests {
 public:
  Blocking() : Requests({10}) {}
  Batch batch(Split split, const BatchRequest& request) override {
    asked.release();
    may_go.acquire();
    return Requests::batch(split, request);
  }
  std::binary_semaphore asked{0}, may_go{0};
};

TEST(Batches, MeasureTheWaitOfTheirCaller) {
  Blocking task;
  Batches batches(task, 1, 0);
  double kept = 0;
  std::thread other([&] {
    task.asked.acquire();
    const auto begin = SteadyClock::now();
    while (SteadyClock::now() - begin < std::chrono::milliseconds(2)) std::this_thread::yield();
    kept = seconds(SteadyClock::now() - begin);
    task.may_go.release();
  });
  batches.next();
  other.join();
  EXPECT_GE(batches.wait_seconds(), kept);
}

}  // namespace
}  // namespace capstan::training
