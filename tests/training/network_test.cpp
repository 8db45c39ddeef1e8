#include "capstan/training/network.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/tasks.h"

namespace capstan::training {
namespace {

using capstan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const data::SampleShape kShape{{3, 8, 8}, 5};

TEST(Network, HasTheDatasetsClassesUnlessMoreAreGiven) {
  const auto classes = [](std::int64_t asked) {
    return make_network({"mlp", asked}, kShape, 8)->parameters().back().tensor.size(0);
  };
  EXPECT_EQ(classes(0), 5);
  EXPECT_EQ(classes(9), 9);
  EXPECT_THAT([&] { classes(4); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("--num-classes 4"), HasSubstr("5"))));
}

TEST(Network, OfTheZooNeedsImagesWithClasses) {
  EXPECT_THAT(
      [] {
        make_network({"lenet"}, {{64}, 10}, 8);
      },
      ThrowsMessage<UserError>("network lenet takes images (channels x height x width); the dataset "
                               "has 64 numbers per sample: add :shape=CxHxW to --dataset"));
  EXPECT_THAT(
      [] {
        make_network({"mlp"}, {{3, 8, 8}, 0, {2}}, 8);
      },
      ThrowsMessage<UserError>(
          HasSubstr("network mlp predicts classes; the dataset's target is 2 numbers per sample")));
}

TEST(Network, ABatchThatCannotTrainItIsRejected) {
  EXPECT_NO_THROW(make_network({"resnet20"}, kShape, 1));
  EXPECT_NO_THROW(make_network({"resnet18-cifar"}, kShape, 2));
  EXPECT_THAT([] { make_network({"resnet18-cifar"}, kShape, 1); },
              ThrowsMessage<UserError>(HasSubstr("--batch-size must be at least 2")));
}

// A file of weights as from another program: value i of tensor t is t + i / 1000.
class Weights : public ::testing::Test {
 protected:
  static std::vector<checkpoint::Tensor> tensors(bool counts) {
    std::vector<checkpoint::Tensor> out;
    const auto model = make_network({"resnet20"}, kShape, 8);
    for (const auto* list : {&model->parameters(), &model->buffers()}) {
      for (const auto& t : *list) {
        const bool count = t.name.ends_with("num_batches_tracked");
        if (count && !counts) continue;
        auto& made = out.emplace_back(t.name, t.tensor.sizes().vec(), std::vector<float>(t.tensor.numel()));
        const auto number = static_cast<float>(out.size());
        for (std::size_t i = 0; i < made.values.size(); ++i)
          made.values[i] = count ? 12 : number + static_cast<float>(i) / 1000;
      }
    }
    return out;
  }

  std::unique_ptr<models::Model> load(const std::vector<checkpoint::Tensor>& list) const {
    std::vector<checkpoint::TensorView> views;
    for (const auto& t : list) views.push_back({t.name, t.dims, t.values});
    checkpoint::write_safetensors(folder_ / "w.safetensors", views);
    return make_network({"resnet20", 0, 1, folder_ / "w.safetensors"}, kShape, 8);
  }

  const TemporaryFolder folder_;
};

TEST_F(Weights, BecomeParametersAndBuffers) {
  for (const bool counts : {true, false}) {
    auto list = tensors(counts);
    std::ranges::reverse(list);  // any order
    const auto model = load(list);
    std::size_t seen = 0;
    for (const auto* ours : {&model->parameters(), &model->buffers()}) {
      for (const auto& [name, tensor, aliases, sparse] : *ours) {
        const auto found = std::ranges::find(list, name, &checkpoint::Tensor::name);
        if (found == list.end()) {
          EXPECT_EQ(tensor.item<std::int64_t>(), 0) << name;
          continue;
        }
        const auto plain = tensor.detach().to(at::kFloat).contiguous();
        EXPECT_EQ(std::vector<float>(plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()),
                  found->values)
            << name;
        ++seen;
      }
    }
    EXPECT_EQ(seen, list.size());
  }
}

TEST_F(Weights, OfAnotherNetworkAreRejectedWithTheFirstTensor) {
  const auto good = tensors(true);
  auto missing = good, unknown = good, reshaped = good;
  missing.erase(missing.begin() + 1);
  unknown.push_back({"fc2.weight", {1}, {0}});
  reshaped[0].dims = {3, 16, 3, 3};
  const auto refused = [](const std::string& what) {
    return ThrowsMessage<UserError>(
        AllOf(HasSubstr("w.safetensors"), HasSubstr("another network"), HasSubstr(what)));
  };
  EXPECT_THAT([&] { load(missing); }, refused("tensor bn1.weight (16) is missing"));
  EXPECT_THAT([&] { load(unknown); }, refused("this network has no tensor fc2.weight"));
  EXPECT_THAT([&] { load(reshaped); },
              refused("tensor conv1.weight has shape 3x16x3x3 and should have 16x3x3x3"));
}

// A model trained in a single process is evaluated with its own running statistics.
TEST(Network, KeepsItsBuffersInASingleProcess) {
  const auto task = classify("synthetic:3x8x8:4:128", "resnet20");
  SingleOptions options;
  options.batch_size = 32;
  options.epochs = 3;
  options.optimizer.first.lr = 0.05;
  const auto result = train_single(options, *task, {});
  const auto& tracked = task->buffers()[2];
  ASSERT_EQ(tracked.name, "bn1.num_batches_tracked");
  EXPECT_EQ(tracked.tensor.item<std::int64_t>(), 12);
  EXPECT_GT(evaluate(*task)->values[0], 0.5) << "of four classes a quarter is luck";
}

}  // namespace
}  // namespace capstan::training
