#include "capstan/models/gradient_arena.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "capstan/models/arena.h"
#include "capstan/models/registry.h"

namespace capstan::models {
namespace {

using testing::ElementsAre;

struct Problem {
  at::Tensor images = at::randn({8, 1, 28, 28});
  at::Tensor labels = at::randint(10, {8}, at::kLong);

  at::Tensor loss(Model& model) const { return at::cross_entropy_loss(model.forward(images), labels); }
};

// A model with a parameter that forward does not use, and one that it uses twice.
class Uneven : public Model {
 public:
  at::Tensor forward(const at::Tensor& x) override {
    const auto& twice = parameters_[0].tensor;
    return at::mm(at::mm(x, twice), twice);
  }
  const std::vector<NamedTensor>& parameters() const override { return parameters_; }
  const std::vector<NamedTensor>& buffers() const override { return buffers_; }
  void train(bool) override {}

 private:
  std::vector<NamedTensor> parameters_ = {{"twice", at::randn({3, 3}).requires_grad_()},
                                          {"unused", at::randn({5}).requires_grad_()}};
  std::vector<NamedTensor> buffers_;
};

void expect_equals_autograd(const std::vector<float>& flat, const FlatLayout& layout,
                            const Model& reference) {
  for (std::size_t i = 0; i < reference.parameters().size(); ++i) {
    const auto& [name, p, aliases, sparse] = reference.parameters()[i];
    const auto ours = tensor_in(layout, i, const_cast<float*>(flat.data()));
    // Where two pixels are almost equal, rounding decides which of them max pooling takes, and layouts round
    // differently: single elements may differ, but the whole hardly.
    const double error = (ours - p.grad()).norm().item<double>(), size = p.grad().norm().item<double>();
    EXPECT_LE(error, 0.01 * size + 1e-6) << name;
  }
}

TEST(GradientArena, EqualsAutograd) {
  for (const auto* name : {"lenet", "mlp"}) {
    const Problem problem;
    const auto reference = make(name, {});  // plain: not bound, NCHW
    problem.loss(*reference).backward();

    const auto model = make(name, {});
    const auto layout = layout_of(model->parameters());
    std::vector<float> weights(layout.size()), gradients(layout.size(), -1);
    copy_parameters_out(model->parameters(), layout, weights);
    bind_parameters(model->parameters(), layout, weights.data());
    GradientArena arena(model->parameters(), layout, gradients);
    for (int pass = 0; pass < 3; ++pass) {  // nothing accumulates from one pass to the next
      arena.begin();
      problem.loss(*model).backward();
      arena.finish();
      expect_equals_autograd(gradients, layout, *reference);
      for (const auto& p : model->parameters()) EXPECT_FALSE(p.tensor.grad().defined());
    }
    EXPECT_EQ(gradients.back(), 0) << "the gap after the last bias";
  }
}

// Convolutions in groups, batch norm, shortcuts and concatenation, in the arena's order.
TEST(GradientArena, EqualsAutogradForEveryKindOfLayer) {
  for (const auto* name : {"resnet20", "resnet18-cifar", "mobilenet-v2", "densenet121", "googlenet"}) {
    const ModelOptions options{3, 32, 32, 10, 1, 0.0};
    const auto images = at::randn({8, 3, 32, 32});
    const auto labels = at::randint(10, {8}, at::kLong);
    const auto reference = make(name, options);  // plain: not bound, NCHW
    reference->loss(images, labels).backward();

    const auto model = make(name, options);
    const auto layout = layout_of(model->parameters());
    std::vector<float> weights(layout.size()), gradients(layout.size(), -1);
    copy_parameters_out(model->parameters(), layout, weights);
    bind_parameters(model->parameters(), layout, weights.data());
    GradientArena arena(model->parameters(), layout, gradients);
    arena.begin();
    model->loss(images.contiguous(at::MemoryFormat::ChannelsLast), labels).backward();
    arena.finish();
    double most = 0;
    for (const auto& p : reference->parameters())
      most = std::max(most, p.tensor.grad().norm().item<double>());
    for (std::size_t i = 0; i < reference->parameters().size(); ++i) {
      const auto expected = reference->parameters()[i].tensor.grad();
      const auto ours = tensor_in(layout, i, gradients.data());
      // In 32 bits another order of sums flips a few ReLUs, which deep networks amplify; a misplaced value
      // would differ much more.
      EXPECT_LE((ours - expected).norm().item<double>(), 0.05 * expected.norm().item<double>() + 1e-4 * most)
          << name << " " << reference->parameters()[i].name;
    }
    for (std::size_t i = 0; i < model->buffers().size(); ++i) {
      EXPECT_TRUE(at::allclose(model->buffers()[i].tensor, reference->buffers()[i].tensor, 1e-3, 1e-5))
          << name << " " << model->buffers()[i].name;
    }
  }
}

TEST(GradientArena, WorksOnReadOnlyWeights) {
  const Problem problem;
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  const auto bytes = layout.size() * sizeof(float);
  void* const mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const weights = static_cast<float*>(mapping);
  copy_parameters_out(model->parameters(), layout, {weights, layout.size()});
  ASSERT_EQ(::mprotect(mapping, bytes, PROT_READ), 0);
  bind_parameters(model->parameters(), layout, weights);
  std::vector<float> gradients(layout.size());
  {
    GradientArena arena(model->parameters(), layout, gradients);
    arena.begin();
    problem.loss(*model).backward();
    arena.finish();
  }
  const auto reference = make("lenet", {});
  problem.loss(*reference).backward();
  expect_equals_autograd(gradients, layout, *reference);
  ::munmap(mapping, bytes);
}

TEST(GradientArena, ReportsEachTensorOnceLastLayerFirst) {
  const Problem problem;
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  std::vector<float> gradients(layout.size());
  GradientArena arena(model->parameters(), layout, gradients);
  std::vector<std::size_t> order;
  std::vector<std::vector<float>> seen(layout.tensors().size());
  arena.on_ready([&](std::size_t i) {
    order.push_back(i);
    seen[i].assign(gradients.begin() + layout.range(i).begin, gradients.begin() + layout.range(i).end);
  });
  arena.begin();
  problem.loss(*model).backward();
  EXPECT_EQ(order.size(), layout.tensors().size()) << "all are reported during the backward pass";
  arena.finish();

  ASSERT_EQ(order.size(), layout.tensors().size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto range = layout.range(i);
    EXPECT_EQ(seen[i], std::vector<float>(gradients.begin() + range.begin, gradients.begin() + range.end))
        << i;
  }
  for (auto& i : order) i /= 2;  // weight and bias of one layer come in any order
  EXPECT_THAT(order, ElementsAre(3, 3, 2, 2, 1, 1, 0, 0));
}

TEST(GradientArena, ATensorWithoutGradientIsZeroAndReported) {
  Uneven model;
  const auto layout = layout_of(model.parameters());
  std::vector<float> gradients(layout.size(), 7);
  GradientArena arena(model.parameters(), layout, gradients);
  std::vector<std::size_t> order;
  arena.on_ready([&](std::size_t i) { order.push_back(i); });
  const auto x = at::randn({4, 3});
  arena.begin();
  model.forward(x).sum().backward();
  arena.finish();
  EXPECT_THAT(order, ElementsAre(0, 1));
  for (auto i = layout.range(1).begin; i < layout.range(1).end; ++i) EXPECT_EQ(gradients[i], 0);

  // d/dW Σ (xWW) = xᵀ (1 Wᵀ) + (xW)ᵀ 1
  const auto w = model.parameters()[0].tensor.detach();
  const auto ones = at::ones({4, 3});
  const auto expected = at::mm(x.t(), at::mm(ones, w.t())) + at::mm(at::mm(x, w).t(), ones);
  EXPECT_TRUE(at::allclose(at::from_blob(gradients.data(), {3, 3}, at::kFloat), expected, 1e-4, 1e-5));
}

TEST(GradientArena, RedirectChangesTheArray) {
  at::set_num_threads(1);  // otherwise the first pass of a process may be divided differently
  const Problem problem;
  const auto model = make("mlp", {});
  const auto layout = layout_of(model->parameters());
  std::vector<float> first(layout.size(), 1), second(layout.size(), 2);
  GradientArena arena(model->parameters(), layout, first);
  const auto pass = [&] {
    arena.begin();
    problem.loss(*model).backward();
    arena.finish();
  };
  pass();
  const auto kept = first;
  arena.redirect(second);
  pass();
  EXPECT_EQ(first, kept);
  EXPECT_EQ(second, kept);
}

TEST(GradientArena, LeavesTheModelUnchanged) {
  const Problem problem;
  const auto model = make("mlp", {});
  const auto layout = layout_of(model->parameters());
  std::vector<float> gradients(layout.size(), 0);
  { GradientArena arena(model->parameters(), layout, gradients); }
  problem.loss(*model).backward();
  EXPECT_EQ(gradients, std::vector<float>(layout.size(), 0));
  EXPECT_TRUE(model->parameters()[0].tensor.grad().defined());
}

}  // namespace
}  // namespace capstan::models
