#include "capstan/training/loader.h"

#include <semaphore>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/base/time.h"

namespace capstan::training {
namespace {

// Two channels of 2x3: the sample's number in the first, the epoch's in the second, plus the pixel's index.
class Numbers : public data::ImageSource {
 public:
  explicit Numbers(bool immediate) : immediate_(immediate) {}
  const data::ImageShape& shape() const override { return shape_; }
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
  const data::ImageShape shape_{2, 2, 3, 4};
  const bool immediate_;
};

// Blocks a request for an image until it is released.
class Blocking final : public Numbers {
 public:
  Blocking() : Numbers(false) {}
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override {
    asked.release();
    may_go.acquire();
    Numbers::render(sample, epoch, out);
  }
  mutable std::binary_semaphore asked{0}, may_go{0};
};

TEST(Loader, MeasuresTheWaitOfItsCaller) {
  const Blocking source;
  data::Sampler sampler({10, 1, 1}, 0, 5);
  Loader loader(source, 0, batches_of(sampler, 0, 10));
  double kept = 0;
  std::thread other([&] {
    source.asked.acquire();
    const auto begin = SteadyClock::now();
    while (SteadyClock::now() - begin < std::chrono::milliseconds(2)) std::this_thread::yield();
    kept = seconds(SteadyClock::now() - begin);
    source.may_go.release();
  });
  loader.next();
  other.join();
  EXPECT_GE(loader.wait_seconds(), kept);
}

TEST(Loader, ReturnsTheSamplersBatchesInlineAndByThreads) {
  for (const bool immediate : {true, false}) {
    for (const unsigned threads : {0u, 1u, 3u}) {
      const Numbers source(immediate);
      data::Sampler sampler({10, 1, 4}, 0, 5);
      Loader loader(source, threads, batches_of(sampler, 2, 9));
      for (std::uint64_t step = 2; step < 9; ++step) {  // 3 steps per epoch, the last of 2 samples
        const auto order = data::epoch_order(10, 5, step / 3);
        const auto batch = loader.next();
        ASSERT_EQ(batch.size(), step % 3 == 2 ? 2 : 4);
        ASSERT_EQ(batch.images.sizes(), (at::IntArrayRef{batch.size(), 2, 2, 3}));
        EXPECT_TRUE(batch.images.is_contiguous(at::MemoryFormat::ChannelsLast));
        for (std::int64_t n = 0; n < batch.size(); ++n) {
          const auto sample = order[static_cast<std::size_t>(step % 3 * 4) + static_cast<std::size_t>(n)];
          EXPECT_EQ(batch.labels[n].item<std::int64_t>(), sample % 4);
          EXPECT_FLOAT_EQ(batch.images[n][0][1][2].item<float>(), static_cast<float>(sample) + 0.5f);
          EXPECT_FLOAT_EQ(batch.images[n][1][1][0].item<float>(), static_cast<float>(step / 3) + 0.3f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace capstan::training
