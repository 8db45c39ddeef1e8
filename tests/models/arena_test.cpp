#include "capstan/models/arena.h"

#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/models/registry.h"
#include "capstan/user_error.h"

namespace capstan::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<float> flat_weights(const Model& model) {
  std::vector<float> flat(layout_of(model.parameters()).size(), -1);
  copy_parameters_out(model.parameters(), layout_of(model.parameters()), flat);
  return flat;
}

TEST(Arena, HoldsConvolutionsInChannelsLastOrder) {
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  const auto flat = flat_weights(*model);
  const auto weight = model->parameters()[2].tensor;  // conv2.weight
  ASSERT_EQ(weight.sizes(), (at::IntArrayRef{50, 20, 5, 5}));
  const auto value = weight.accessor<float, 4>();
  auto at = layout.offset(2);
  for (int out = 0; out < 50; ++out) {
    for (int y = 0; y < 5; ++y) {
      for (int x = 0; x < 5; ++x) {
        for (int in = 0; in < 20; ++in) ASSERT_EQ(flat[at++], value[out][in][y][x]);
      }
    }
  }
}

TEST(Arena, GapsAreZero) {
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  const auto flat = flat_weights(*model);
  std::vector<bool> used(layout.size());
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    for (auto at = layout.range(i).begin; at < layout.range(i).end; ++at) used[at] = true;
  }
  ASSERT_LT(layout.parameters(), layout.size());
  for (std::size_t at = 0; at < flat.size(); ++at) EXPECT_TRUE(used[at] || flat[at] == 0) << at;
}

TEST(Arena, AnUnboundModelKeepsItsValues) {
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  const auto before = flat_weights(*model);
  auto flat = before;
  bind_parameters(model->parameters(), layout, flat.data());
  unbind_parameters(model->parameters());
  std::fill(flat.begin(), flat.end(), 7.0f);
  EXPECT_EQ(flat_weights(*model), before);
}

TEST(Arena, ABoundModelComputesTheSame) {
  const auto model = make("lenet", {});
  const auto layout = layout_of(model->parameters());
  const auto flat = flat_weights(*model);
  const auto images = at::randn({6, 1, 28, 28});
  const auto before = model->forward(images).detach();
  bind_parameters(model->parameters(), layout, flat.data());
  EXPECT_TRUE(at::allclose(model->forward(images).detach(), before, 1e-5, 1e-6));
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const auto& p = model->parameters()[i].tensor;
    EXPECT_EQ(p.data_ptr<float>(), flat.data() + layout.offset(i));
    EXPECT_TRUE(p.requires_grad() && p.is_leaf());
  }
}

TEST(Arena, ABoundModelFollowsTheArray) {
  const auto model = make("mlp", {});
  auto flat = flat_weights(*model);
  bind_parameters(model->parameters(), layout_of(model->parameters()), flat.data());
  std::fill(flat.begin(), flat.end(), 0.0f);
  EXPECT_EQ(model->forward(at::randn({2, 1, 28, 28})).abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace capstan::models
