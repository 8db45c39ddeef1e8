#include "capstan/training/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/data/partition.h"

namespace capstan::training {
namespace {

// Two channels of 2x3: the sample's number in the first, the epoch's in the second, plus the pixel's index.
class Numbers : public data::SampleSource {
 public:
  explicit Numbers(bool immediate) : immediate_(immediate) {}
  const data::SampleShape& shape() const override { return shape_; }
  std::size_t count() const override { return 10; }
  std::int64_t label(std::size_t sample) const override { return static_cast<std::int64_t>(sample) % 4; }
  bool is_immediate() const override { return immediate_; }
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override {
    for (int p = 0; p < 6; ++p) {
      *out++ = static_cast<float>(sample) + 0.1f * static_cast<float>(p);
      *out++ = static_cast<float>(epoch) + 0.1f * static_cast<float>(p);
    }
  }

 private:
  const data::SampleShape shape_{{2, 2, 3}, 4};
  const bool immediate_;
};

BatchSequence steps_of(data::Sampler& sampler, std::uint64_t first, std::uint64_t end) {
  return [&sampler, step = first, end]() mutable -> std::optional<BatchRequest> {
    if (step >= end) return {};
    const auto place = sampler.place(step++);
    return BatchRequest{place.epoch, sampler.batch(place.epoch, place.step)};
  };
}

TEST(Loader, ReturnsTheSamplersBatchesInlineAndByThreads) {
  for (const bool immediate : {true, false}) {
    for (const unsigned threads : {0u, 1u, 3u}) {
      const Numbers source(immediate);
      data::Sampler sampler({10, 1, 4}, 0, 5);
      Loader loader(source, threads, steps_of(sampler, 2, 9));
      for (std::uint64_t step = 2; step < 9; ++step) {  // 3 steps per epoch, the last of 2 samples
        const auto order = data::epoch_order(10, 5, step / 3);
        const auto batch = loader.next();
        ASSERT_EQ(batch.samples, step % 3 == 2 ? 2u : 4u);
        ASSERT_EQ(batch.input.sizes(), (at::IntArrayRef{batch.input.size(0), 2, 2, 3}));
        EXPECT_TRUE(batch.input.is_contiguous(at::MemoryFormat::ChannelsLast));
        for (std::int64_t n = 0; n < batch.input.size(0); ++n) {
          const auto sample = order[static_cast<std::size_t>(step % 3 * 4) + static_cast<std::size_t>(n)];
          EXPECT_EQ(batch.target[n].item<std::int64_t>(), sample % 4);
          EXPECT_FLOAT_EQ(batch.input[n][0][1][2].item<float>(), static_cast<float>(sample) + 0.5f);
          EXPECT_FLOAT_EQ(batch.input[n][1][1][0].item<float>(), static_cast<float>(step / 3) + 0.3f);
        }
      }
    }
  }
}

// Six numbers as input; the target is the sample's number.
class Regression final : public Numbers {
 public:
  explicit Regression(bool immediate) : Numbers(immediate) {}
  const data::SampleShape& shape() const override { return shape_; }
  void write_target(std::size_t sample, float* out) const override { *out = static_cast<float>(sample); }

 private:
  const data::SampleShape shape_{{12}, 0, {1}};
};

TEST(Loader, ReturnsTargetsOfNumbersInlineAndByThreads) {
  for (const bool immediate : {true, false}) {
    const Regression source(immediate);
    data::Sampler sampler({10, 1, 4}, 0, 5);
    Loader loader(source, 2, steps_of(sampler, 0, 2));
    for (std::size_t step = 0; step < 2; ++step) {
      const auto order = data::epoch_order(10, 5, 0);
      const auto batch = loader.next();
      ASSERT_EQ(batch.input.sizes(), (at::IntArrayRef{4, 12}));
      ASSERT_EQ(batch.target.sizes(), (at::IntArrayRef{4, 1}));
      for (std::size_t n = 0; n < 4; ++n) {
        const auto sample = static_cast<float>(order[step * 4 + n]);
        const auto at = static_cast<std::int64_t>(n);
        EXPECT_EQ(batch.target[at][0].item<float>(), sample);
        EXPECT_FLOAT_EQ(batch.input[at][10].item<float>(), sample + 0.5f);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::training
