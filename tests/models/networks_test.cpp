#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "capstan/layouts/network_layout.h"
#include "capstan/models/arena.h"
#include "capstan/models/registry.h"
#include "capstan/user_error.h"

namespace capstan::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<TensorShape> shapes(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorShape> out;
  for (const auto& t : tensors) out.push_back({t.name, t.tensor.sizes().vec()});
  return out;
}

// Few classes: the tensors for 1000 classes are compared with PyTorch elsewhere, without building the
// networks.
TEST(Networks, HaveTheTensorsOfTheTable) {
  for (const auto& network : layouts::networks()) {
    const auto& size = network.input;
    const auto model = make(std::string(network.name), {size.channels, size.height, size.width, 3, 1});
    const auto table = layouts::network_tensors(network, size, 3);
    EXPECT_EQ(FlatLayout(shapes(model->parameters())).difference(FlatLayout(table.parameters)), "")
        << network.name;
    EXPECT_EQ(FlatLayout(shapes(model->buffers())).difference(FlatLayout(table.buffers)), "") << network.name;
    for (const auto& b : model->buffers()) {
      EXPECT_EQ(b.tensor.scalar_type(), b.name.ends_with("num_batches_tracked") ? at::kLong : at::kFloat);
      EXPECT_FALSE(b.tensor.requires_grad());
    }
    for (const auto& p : model->parameters()) EXPECT_TRUE(p.tensor.requires_grad() && p.tensor.is_leaf());
  }
}

TEST(Networks, LeNetEqualsAPlainDefinition) {
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
  EXPECT_EQ(layout_of(model->parameters()).parameters(), 144u * 128 + 128 + 128 * 4 + 4);
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

TEST(Networks, DependOnTheSeed) {
  const auto weight = [](std::uint64_t seed) {
    return make("mlp", {1, 28, 28, 10, seed})->parameters()[0].tensor;
  };
  EXPECT_TRUE(at::equal(weight(1), weight(1)));
  EXPECT_FALSE(at::equal(weight(1), weight(2)));
}

TEST(Networks, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_THAT([] { make("lennet", {}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'lennet'"), HasSubstr("did you mean lenet?"))));
}

TEST(Networks, RejectImagesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        make("lenet", {3, 32, 32, 10, 1});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("1x28x28"), HasSubstr("3x32x32"))));
  EXPECT_THAT(
      [] {
        make("alexnet", {3, 32, 32, 10, 1});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("at least 63x63"), HasSubstr("3x32x32"))));
}

TEST(Networks, AcceptAnyNumberOfChannels) {
  const auto model = make("resnet20", {5, 12, 12, 4, 1});
  EXPECT_EQ(model->forward(at::randn({2, 5, 12, 12})).sizes(), (at::IntArrayRef{2, 4}));
}

// The standard deviation of each family's initial weights, by torchvision's formulas, and its biases.
TEST(Networks, AreInitialisedAsTorchvisions) {
  struct Case {
    const char *network, *tensor;
    double deviation;
  };
  const double vgg = std::sqrt(2.0 / (512 * 9));
  for (const auto& c : std::initializer_list<Case>{
           {"resnet18", "layer4.1.conv2.weight", std::sqrt(2.0 / (512 * 9))},
           {"resnet18", "fc.weight", 1 / std::sqrt(3.0 * 512)},
           {"resnet18", "layer1.0.bn1.weight", 0},
           {"resnet110", "layer2.0.conv1.weight", std::sqrt(2.0 / (32 * 9))},
           {"vgg11-bn-cifar", "features.25.weight", vgg},
           {"vgg11-bn-cifar", "features.25.bias", 0},
           {"vgg11-cifar", "classifier.1.weight", 1 / std::sqrt(3.0 * 512)},
           {"googlenet-noaux", "inception5b.branch2.1.conv.weight", 0.01},
           {"googlenet-noaux", "fc.weight", 0.01},
           {"googlenet-noaux", "fc.bias", 1 / std::sqrt(3.0 * 1024)},
           {"inception-v3", "AuxLogits.fc.weight", 0.001},
           {"inception-v3", "AuxLogits.conv1.conv.weight", 0.1},
           {"inception-v3", "fc.weight", 0.1},
           {"densenet121", "features.denseblock4.denselayer16.conv2.weight", std::sqrt(2.0 / (128 * 9))},
           {"densenet121", "classifier.bias", 0},
           {"densenet121", "classifier.weight", 1 / std::sqrt(3.0 * 1024)},
           {"mobilenet-v2", "features.18.0.weight", std::sqrt(2.0 / 1280)},
           {"mobilenet-v2", "features.17.conv.1.0.weight", std::sqrt(2.0 / (960 * 9))},
           {"mobilenet-v2", "classifier.1.weight", 0.01},
           {"mobilenet-v2", "classifier.1.bias", 0},
       }) {
    const auto model = make(c.network, {3, 299, 299, 1000, 1});
    const auto& all = model->parameters();
    const auto found = std::ranges::find(all, c.tensor, &NamedTensor::name);
    ASSERT_NE(found, all.end()) << c.network << " " << c.tensor;
    EXPECT_NEAR(found->tensor.std(false).item<double>(), c.deviation, 0.05 * c.deviation)
        << c.network << " " << c.tensor;
  }
}

// A case that PyTorch rejects: a single value has no variance.
TEST(Networks, ABatchOfOneSampleKeepsTheRunningStatistics) {
  const auto model = make("resnet20", {3, 4, 4, 3, 1});  // 1x1 in its last stage
  const auto loss = model->loss(at::randn({1, 3, 4, 4}), at::zeros({1}, at::kLong));
  loss.backward();
  EXPECT_TRUE(std::isfinite(loss.item<float>()));
  for (const auto& p : model->parameters())
    EXPECT_TRUE(p.tensor.grad().isfinite().all().item<bool>()) << p.name;
  const auto buffer = [&](const char* name) {
    return std::ranges::find(model->buffers(), name, &NamedTensor::name)->tensor;
  };
  for (const auto& b : model->buffers()) EXPECT_TRUE(b.tensor.isfinite().all().item<bool>()) << b.name;
  EXPECT_EQ(buffer("bn1.num_batches_tracked").item<std::int64_t>(), 1);
  EXPECT_EQ(buffer("layer3.1.bn1.num_batches_tracked").item<std::int64_t>(), 0);
  EXPECT_EQ(buffer("layer3.1.bn1.running_var").min().item<float>(), 1);
}

TEST(Networks, DropoutIsTheNetworksOwnUnlessGiven) {
  const auto spread = [](std::optional<double> rate) {
    const auto model = make("vgg11-cifar", {3, 32, 32, 4, 1, rate});
    const auto images = at::ones({8, 3, 32, 32});  // equal images: without dropout all logits are equal
    return model->forward(images).std(0).max().item<float>();
  };
  EXPECT_LT(spread(0), 1e-5);
  EXPECT_GT(spread({}), 1e-4);
}

}  // namespace
}  // namespace capstan::models
