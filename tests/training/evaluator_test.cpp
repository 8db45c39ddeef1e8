#include "capstan/training/evaluator.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/data/memory_source.h"
#include "capstan/training/classification.h"

namespace capstan::training {
namespace {

constexpr std::int64_t kClasses = 7;

// Ranks class p first for a first pixel of p, then p + 1 and so on, each logit 2 lower.
class FirstPixel : public models::Model {
 public:
  at::Tensor forward(const at::Tensor& images) override {
    EXPECT_FALSE(training_) << "evaluation runs in evaluation mode";
    ++batches;
    const auto first = images.select(1, 0).select(1, 0).select(1, 0).round().unsqueeze(1);
    const auto rank = at::remainder(at::arange(kClasses).unsqueeze(0) - first, kClasses);
    return -2 * rank;
  }
  const NamedTensors& parameters() const override { return none_; }
  const NamedTensors& buffers() const override { return none_; }
  void train(bool on) override { training_ = on; }
  bool training() const { return training_; }

  int batches = 0;

 private:
  NamedTensors none_;
  bool training_ = true;
};

// Pixel values 0 to 6 are not normalised.
data::Split pixels(std::size_t samples) {
  data::Split split;
  split.shape = {{1, 1, 1}, kClasses};
  auto& levels = split.levels.emplace_back();
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < samples; ++i) split.pixels.push_back(static_cast<std::uint8_t>(i % kClasses));
  return split;
}

struct Evaluated {
  std::unique_ptr<Classification> task;
  FirstPixel* model;
};
Evaluated evaluated(const data::Split& split) {
  auto model = std::make_unique<FirstPixel>();
  auto* const kept = model.get();
  data::Dataset dataset{nullptr, std::make_unique<data::MemorySource>(split)};
  return {std::make_unique<Classification>(std::move(dataset), std::move(model)), kept};
}

// The label's rank in the model's order: 0 is right, up to 4 is in the top 5.
std::size_t place_of_label(std::size_t sample) {
  return sample < 450 ? 0 : sample < 550 ? 3 : 6;
}

TEST(Evaluator, CountsTheRightAnswersAndAveragesTheLossOverAllSamples) {
  constexpr std::size_t kSamples = 600;  // more than two batches, the last one partial
  auto split = pixels(kSamples);
  double loss = 0;
  double normaliser = 0;
  for (std::int64_t r = 0; r < kClasses; ++r) normaliser += std::exp(-2.0 * static_cast<double>(r));
  for (std::size_t i = 0; i < kSamples; ++i) {
    split.labels.push_back(static_cast<std::int64_t>((i + place_of_label(i)) % kClasses));
    loss += 2.0 * static_cast<double>(place_of_label(i)) + std::log(normaliser);
  }
  auto [task, model] = evaluated(split);
  const auto result = evaluate(*task);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->samples, kSamples);
  EXPECT_DOUBLE_EQ(result->values[0], 450.0 / 600);
  EXPECT_DOUBLE_EQ(result->values[2], 550.0 / 600);
  EXPECT_NEAR(result->values[1], loss / kSamples, 1e-5);
  EXPECT_TRUE(model->training()) << "and leaves the model in training mode";
}

TEST(Evaluator, EndsWhenCancelled) {
  auto split = pixels(600);
  split.labels.resize(600);
  auto [task, model] = evaluated(split);
  std::atomic<bool> cancel = true;
  EXPECT_FALSE(evaluate(*task, {.cancel = &cancel}));
  EXPECT_EQ(model->batches, 0);
  EXPECT_TRUE(model->training());
  cancel = false;
  EXPECT_TRUE(evaluate(*task, {.batch = 100, .cancel = &cancel}));
  EXPECT_EQ(model->batches, 6) << "of 100 samples each";
}

}  // namespace
}  // namespace capstan::training
