#include "capstan/data/prefetcher.h"

#include <atomic>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::data {
namespace {

using testing::ThrowsMessage;

// An image of three floats that identify the request.
class Echo : public SampleSource {
 public:
  const SampleShape& shape() const override { return shape_; }
  std::size_t count() const override { return 1000; }
  std::int64_t label(std::size_t sample) const override { return static_cast<std::int64_t>(sample % 7); }
  bool is_immediate() const override { return false; }
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override {
    ++begun_;
    if (sample == bad_) throw UserError("sample 13 is bad");
    if (slow_) std::this_thread::sleep_for(std::chrono::microseconds(sample * 37 % 500));
    out[0] = static_cast<float>(sample);
    out[1] = static_cast<float>(epoch);
    out[2] = -1;
    ++ended_;
  }

  std::size_t bad_ = 5000;
  bool slow_ = false;
  mutable std::atomic<std::size_t> begun_ = 0, ended_ = 0;

 private:
  const SampleShape shape_{{3, 1, 1}, 7};
};

// Batches of 0, 1, 2, … samples that reuse one list, as a sampler may.
BatchSequence growing(std::size_t batches, std::size_t* asked = nullptr) {
  return
      [=, list = std::vector<std::uint32_t>(), n = std::size_t{0}]() mutable -> std::optional<BatchRequest> {
        if (asked) ++*asked;
        if (n == batches) return {};
        list.clear();
        for (std::size_t i = 0; i < n; ++i)
          list.push_back(static_cast<std::uint32_t>((11 * n + 5 * i) % 1000));
        return BatchRequest{n++ / 3, list};
      };
}

TEST(Prefetcher, ReturnsEveryBatchInOrderWithAnyNumberOfThreads) {
  for (const unsigned threads : {1u, 2u, 7u}) {
    Echo source;
    source.slow_ = true;
    Prefetcher prefetcher(source, threads, growing(20));
    for (std::size_t n = 0; n < 20; ++n) {
      const auto batch = prefetcher.next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->labels.size(), n);
      ASSERT_EQ(batch->inputs.size(), 3 * n);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch->inputs.data()) % 64, 0u);
      for (std::size_t i = 0; i < n; ++i) {
        const auto sample = (11 * n + 5 * i) % 1000;
        EXPECT_EQ(batch->labels[i], static_cast<std::int64_t>(sample % 7));
        EXPECT_EQ(batch->inputs[3 * i], static_cast<float>(sample));
        EXPECT_EQ(batch->inputs[3 * i + 1], static_cast<float>(n / 3));
        EXPECT_EQ(batch->inputs[3 * i + 2], -1);
      }
    }
    EXPECT_FALSE(prefetcher.next());
    EXPECT_FALSE(prefetcher.next());
  }
}

// One input, and two numbers as target: the sample and its square.
class Regression final : public SampleSource {
 public:
  const SampleShape& shape() const override { return shape_; }
  std::size_t count() const override { return 1000; }
  std::int64_t label(std::size_t) const override { return -1; }
  void write_target(std::size_t sample, float* out) const override {
    out[0] = static_cast<float>(sample);
    out[1] = static_cast<float>(sample * sample);
  }
  bool is_immediate() const override { return false; }
  void render(std::size_t sample, std::uint64_t, float* out) const override {
    *out = -static_cast<float>(sample);
  }

 private:
  const SampleShape shape_{{1}, 0, {2}};
};

TEST(Prefetcher, ReturnsTargetsOfNumbers) {
  const Regression source;
  Prefetcher prefetcher(source, 2, growing(9));
  for (std::size_t n = 0; n < 9; ++n) {
    const auto batch = prefetcher.next();
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->samples, n);
    ASSERT_TRUE(batch->labels.empty());
    ASSERT_EQ(batch->targets.size(), 2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto sample = static_cast<float>((11 * n + 5 * i) % 1000);
      EXPECT_EQ(batch->inputs[i], -sample);
      EXPECT_EQ(batch->targets[2 * i], sample);
      EXPECT_EQ(batch->targets[2 * i + 1], sample * sample);
    }
  }
}

TEST(Prefetcher, StaysABoundedNumberOfBatchesAhead) {
  Echo source;
  std::size_t asked = 0;
  Prefetcher prefetcher(source, 2, growing(100, &asked));
  EXPECT_EQ(asked, Prefetcher::kAhead);
  for (std::size_t taken = 1; taken <= 20; ++taken) {
    ASSERT_TRUE(prefetcher.next());
    EXPECT_LE(asked, taken + Prefetcher::kAhead);
    // Batch n has n images: only those of requested batches are rendered.
    EXPECT_LE(source.begun_, asked * (asked - 1) / 2);
    EXPECT_GE(source.begun_, taken * (taken - 1) / 2);
  }
}

TEST(Prefetcher, ThrowsAFailureWithItsBatchAndNotEarlier) {
  Echo source;
  source.bad_ = 13;
  std::vector<std::uint32_t> list(8);
  Prefetcher prefetcher(source, 2, [&, n = 0]() mutable {
    list.assign(8, n == 1 ? 13 : 20);
    return std::optional(BatchRequest{static_cast<std::uint64_t>(n++), list});
  });
  EXPECT_TRUE(prefetcher.next());
  EXPECT_THAT([&] { prefetcher.next(); }, ThrowsMessage<UserError>("sample 13 is bad"));
}

TEST(Prefetcher, MayEndWhileItRenders) {
  for (std::size_t i = 0; i < 50; ++i) {
    Echo source;
    source.slow_ = true;
    {
      Prefetcher prefetcher(source, 3, growing(1000));
      for (std::size_t k = 0; k < i % 6; ++k) ASSERT_TRUE(prefetcher.next());
    }
    EXPECT_EQ(source.begun_, source.ended_) << "a thread is still rendering";
  }
}

}  // namespace
}  // namespace capstan::data
