#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "capstan/base/user_error.h"
#include "capstan/layouts/network_layout.h"
#include "capstan/models/arena.h"
#include "capstan/models/registry.h"

namespace capstan::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Networks, LeNetHasTheLayoutOfTheTable) {
  const auto layout = layout_of(*make("lenet", {}));
  EXPECT_EQ(layout.difference(layouts::network_layout("lenet")), "");
  EXPECT_EQ(layout.parameters(), 431'080u);
}

TEST(Networks, LeNetIsTheTextbooks) {
  const auto model = make("lenet", {});
  const auto parameter = [&](std::size_t i) { return model->parameters()[i].tensor; };
  const auto images = at::randn({5, 1, 28, 28});
  auto x = at::max_pool2d(at::relu(at::conv2d(images, parameter(0), parameter(1))), 2);
  x = at::max_pool2d(at::relu(at::conv2d(x, parameter(2), parameter(3))), 2);
  x = at::relu(at::addmm(parameter(5), x.reshape({5, 800}), parameter(4).t()));
  const auto expected = at::addmm(parameter(7), x, parameter(6).t());
  EXPECT_TRUE(at::allclose(model->forward(images), expected, 1e-5, 1e-6));
}

TEST(Networks, MlpTakesAnyImage) {
  const auto model = make("mlp", {3, 8, 6, 4, 1});
  EXPECT_EQ(model->forward(at::randn({5, 3, 8, 6})).sizes(), (at::IntArrayRef{5, 4}));
  EXPECT_EQ(layout_of(*model).parameters(), 144u * 128 + 128 + 128 * 4 + 4);
}

TEST(Networks, AreInitialisedAsPyTorchInitialises) {
  at::manual_seed(42);
  const torch::nn::Conv2d conv1(1, 20, 5), conv2(20, 50, 5);
  const torch::nn::Linear fc1(800, 500), fc2(500, 10);
  const auto model = make("lenet", {1, 28, 28, 10, 42});
  const at::Tensor expected[] = {conv1->weight, conv1->bias, conv2->weight, conv2->bias,
                                 fc1->weight,   fc1->bias,   fc2->weight,   fc2->bias};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_TRUE(at::equal(model->parameters()[i].tensor, expected[i])) << model->parameters()[i].name;
  }
}

TEST(Networks, FollowTheSeed) {
  const auto weight = [](std::uint64_t seed) {
    return make("mlp", {1, 28, 28, 10, seed})->parameters()[0].tensor;
  };
  EXPECT_TRUE(at::equal(weight(1), weight(1)));
  EXPECT_FALSE(at::equal(weight(1), weight(2)));
}

TEST(Networks, AnUnknownNameIsAnsweredWithTheKnownOnesAndTheNearest) {
  EXPECT_THAT([] { make("lennet", {}); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("'lennet'"), HasSubstr("did you mean lenet?"), HasSubstr("lenet, mlp"))));
}

TEST(Networks, LeNetSaysWhichImagesItTakes) {
  EXPECT_THAT(
      [] {
        make("lenet", {3, 32, 32, 10, 1});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("1x28x28"), HasSubstr("3x32x32"))));
}

}  // namespace
}  // namespace capstan::models
