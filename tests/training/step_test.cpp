#include "capstan/training/step.h"

#include <numeric>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/data/dataset.h"
#include "capstan/models/arena.h"
#include "capstan/models/registry.h"
#include "capstan/training/batch.h"

#include "training/tasks.h"

namespace capstan::training {
namespace {

struct Bound {
  std::unique_ptr<Classification> task = classify("synthetic:1x28x28:10:64");
  FlatLayout layout = models::layout_of(task->parameters());
  std::vector<float> gradients = std::vector<float>(layout.size(), 3);
  models::GradientArena arena{task->parameters(), layout, gradients};
};

TEST(Step, LeavesLossAndGradientOfTheBatchMean) {
  const auto dataset = data::load({"synthetic:1x28x28:10:64", "", 1});
  std::vector<std::uint32_t> first(20);
  std::iota(first.begin(), first.end(), 0u);
  const auto batch = gather(*dataset.train, first);
  Bound bound;
  const auto result = compute_gradients(*bound.task, 0, bound.arena, batch);
  EXPECT_EQ(result.samples, 20u);
  EXPECT_GT(result.seconds, 0);

  // The definition: the mean over the samples of -log softmax(logits)[label], one sample at a time.
  const auto reference = models::make("lenet", {});
  at::Tensor loss = at::zeros({});
  for (int i = 0; i < 20; ++i) {
    const auto logits = reference->forward(batch.input.slice(0, i, i + 1)).squeeze(0);
    loss = loss + (at::logsumexp(logits, 0) - logits[batch.target[i].item<std::int64_t>()]) / 20;
  }
  loss.backward();
  EXPECT_NEAR(result.loss, loss.item<float>(), 1e-5);
  for (std::size_t i = 0; i < reference->parameters().size(); ++i) {
    const auto& p = reference->parameters()[i];
    const auto ours = models::tensor_in(bound.layout, i, bound.gradients.data());
    EXPECT_TRUE(at::allclose(ours, p.tensor.grad(), 1e-3, 1e-6)) << p.name;
  }
}

TEST(Step, AnEmptyBatchIsAZeroGradient) {
  const auto dataset = data::load({"synthetic:1x28x28:10:64", "", 1});
  Bound bound;
  const auto result = compute_gradients(*bound.task, 0, bound.arena, gather(*dataset.train, {}));
  EXPECT_EQ(result.samples, 0u);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(bound.gradients, std::vector<float>(bound.layout.size(), 0));
}

}  // namespace
}  // namespace capstan::training
