#include "capstan/training/evaluate.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/data/memory_source.h"

namespace capstan::training {
namespace {

// Answers with class 0 for a dark first pixel and class 1 for a bright one, by a margin of 2.
class FirstPixel : public models::Model {
 public:
  at::Tensor forward(const at::Tensor& images) override {
    EXPECT_FALSE(training_) << "evaluation runs in evaluation mode";
    const auto bright = images.select(1, 0).select(1, 0).select(1, 0).gt(0).to(at::kFloat) * 2;
    return at::stack({2 - bright, bright}, 1) / 1;
  }
  const std::vector<models::NamedTensor>& parameters() const override { return none_; }
  const std::vector<models::NamedTensor>& buffers() const override { return none_; }
  void train(bool on) override { training_ = on; }
  bool training() const { return training_; }

 private:
  std::vector<models::NamedTensor> none_;
  bool training_ = true;
};

TEST(Evaluate, CountsTheRightAnswersAndAveragesTheLossOverAllSamples) {
  constexpr std::size_t kSamples = 600, kWrong = 150;  // more than two batches, the last one partial
  data::Split split;
  split.shape = {1, 1, 1, 2};
  split.levels = {data::normalised_levels(0.5, 1)};
  for (std::size_t i = 0; i < kSamples; ++i) {
    const bool bright = i % 3 == 0;
    split.pixels.push_back(bright ? 255 : 0);
    const bool wrong = i >= kSamples - kWrong;
    split.labels.push_back(bright != wrong);
  }
  FirstPixel model;
  const auto result = evaluate(model, data::MemorySource(split));
  EXPECT_EQ(result.samples, kSamples);
  EXPECT_DOUBLE_EQ(result.accuracy, 0.75);
  const double right_loss = std::log1p(std::exp(-2.0)), wrong_loss = right_loss + 2;
  EXPECT_NEAR(result.loss, 0.75 * right_loss + 0.25 * wrong_loss, 1e-5);
  EXPECT_TRUE(model.training()) << "and leaves the model in training mode";
}

}  // namespace
}  // namespace capstan::training
