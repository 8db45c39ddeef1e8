// TorchScript modules and files that cannot be trained: one line each.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/checkpoint/torch_file.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/scripted_task.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/scripted_modules.h"

namespace capstan::training {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Lt;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using torch::jit::Module;

TEST_F(ScriptedTaskTest, AStateDictIsNamedWithTheFlagAndItsFormat) {
  const std::vector<float> values = {1};
  const checkpoint::TensorView view{"weight", {1}, values};
  checkpoint::write_torch_file(folder_ / "dict.pt", std::span(&view, 1));
  expect_rejected({folder_ / "dict.pt"}, images(), "a state dict is passed as --weights FILE.safetensors");
}

TEST_F(ScriptedTaskTest, WrongFilesAreOneLine) {
  capstan::testing::write_file(folder_ / "text.pt", "no module");
  const auto good = lenet();
  std::string bytes = capstan::testing::contents(good);
  capstan::testing::write_file(folder_ / "cut.pt", bytes.substr(0, bytes.size() / 2));
  expect_rejected({folder_ / "none.pt"}, images(), "no such file");
  expect_rejected({folder_.path()}, images(), "no such file");
  expect_rejected({folder_ / "text.pt"}, images(), "text.pt is not a valid zip archive: it is too short");
  expect_rejected({folder_ / "cut.pt"}, images(), "cut.pt is not a valid zip archive: it has no directory");
}

// libtorch loads such a file.
TEST_F(ScriptedTaskTest, AFlippedBitOfAWeightIsRejectedWithItsPlace) {
  const auto file = reference("small.pt");
  auto bytes = capstan::testing::contents(file);
  const auto task = make_scripted_task({file}, images("digits"));
  const auto weight = values_of(task->parameters()[2].tensor);
  ASSERT_EQ(task->parameters()[2].name, "out.weight");
  const auto at = bytes.find({reinterpret_cast<const char*>(weight.data()), weight.size() * sizeof(float)});
  ASSERT_NE(at, std::string::npos);
  bytes[at + weight.size() * sizeof(float) - 1] ^= 1;
  capstan::testing::write_file(folder_ / "flipped.pt", bytes);
  expect_rejected({folder_ / "flipped.pt"}, images("digits"),
                  "flipped.pt is not a valid zip archive: small/data/5 is damaged");
}

TEST_F(ScriptedTaskTest, IntegersThatFloatsCannotHoldAreRejected) {
  auto net = linear("def forward(self, x):\n    return torch.linear(x, self.weight)\n");
  net.register_buffer("big", at::tensor({16777217}, at::kLong));
  expect_rejected({save(net)}, numbers(), "buffer big has integers that 32-bit floats cannot hold");
}

TEST_F(ScriptedTaskTest, TensorsWhoseElementsShareMemoryAreRejected) {
  const auto net = linear("def forward(self, x):\n    return torch.linear(x, self.weight)\n", at::kFloat,
                          {{"wide", at::zeros({1, 1}).expand({3, 3})}});
  expect_rejected({save(net)}, numbers(), "buffer wide has elements that share memory, as after expand()");
}

TEST_F(ScriptedTaskTest, TensorsWithoutElementsAreRejected) {
  const auto net = linear("def forward(self, x):\n    return torch.linear(x, self.weight)\n", at::kFloat,
                          {{"none", at::zeros({2, 0})}});
  expect_rejected({save(net)}, numbers(), "buffer none is empty (2x0); a tensor must have an element");
}

TEST_F(ScriptedTaskTest, AnUnknownOperatorIsNamed) {
  expect_rejected({reference("unknown_operator.pt"), "module"}, numbers(),
                  "needs the operator aten::no_such_operator");
}

TEST_F(ScriptedTaskTest, TargetsThatTheLossIsNotDefinedForAreOneLine) {
  const auto file = save(linear("def forward(self, x):\n    return torch.linear(x, self.weight)\n"));
  expect_rejected({file, "bce"}, numbers(), "--loss bce: the target of sample 1 of the training part has 2");
  auto test_only = numbers();
  test_only.train.reset();
  expect_rejected({file, "bce"}, std::move(test_only), "of the test part has");
}

TEST_F(ScriptedTaskTest, WrongModulesAreOneLine) {
  constexpr const char* kForward = "def forward(self, x):\n    return torch.linear(x, self.weight)\n";
  expect_rejected({save(linear(kForward, at::kDouble))}, numbers(), "parameter weight is Double");
  expect_rejected({save(linear("def forward(self, x):\n    return [x]\n"))}, numbers(), "forward returns");
  expect_rejected({save(linear(kForward)), "module"}, numbers(), "has no method loss");
  expect_rejected({save(linear("def forward(self, x):\n    return x\n"))}, numbers(), "needs 2x1");
  Module empty("Net");
  empty.define("def forward(self, x):\n    return x\n");
  expect_rejected({save(empty)}, numbers(), "no parameters to train");
}

// The trial has two rows.
TEST_F(ScriptedTaskTest, AnOutputThatDoesNotFitABatchIsOneLineWithTheShapes) {
  const auto file = save(linear("def forward(self, x):\n    return torch.linear(x[:2], self.weight)\n"));
  const auto task = make_scripted_task({file}, numbers());
  constexpr std::uint32_t kSome[] = {0, 1, 2};
  const auto batch = task->batch(Split::kTrain, {0, kSome});
  const auto says = ThrowsMessage<UserError>(
      "net.pt returns a tensor of 2x1 for 3 samples; --loss mse needs 3x1, "
      "the shape of the target");
  EXPECT_THAT([&] { task->loss(0, batch); }, says);
  EXPECT_THAT([&] { task->evaluate(batch); }, says);
}

TEST_F(ScriptedTaskTest, WhatAModuleRaisesIsShown) {
  const auto task = make_scripted_task({reference("raising.pt")}, numbers());
  const auto raised = [&](float kind) -> std::string {
    constexpr std::uint32_t kSome[] = {0, 1, 2};
    const auto batch = task->batch(Split::kTrain, {0, kSome});
    batch.input.fill_(kind);
    try {
      (void)task->loss(0, batch);
    } catch (const std::exception& error) {
      return reason_of(error);
    }
    return "nothing";
  };
  EXPECT_EQ(raised(0), "nothing");
  EXPECT_EQ(raised(1), "my own problem");
  EXPECT_EQ(raised(2), "first line second line");
  EXPECT_EQ(raised(3), "RuntimeError: of mine");
  EXPECT_THAT(raised(4), AllOf(StartsWith("long long long"), EndsWith("..."), SizeIs(Lt(310u))));
  EXPECT_EQ(raised(5), "AssertionError: not five");
  EXPECT_EQ(raised(6), "mat1 and mat2 shapes cannot be multiplied (3x2 and 3x1)");
}

// As PyTorch says it for one row: tests/reference/modules/small.pt has batch norm.
TEST_F(ScriptedTaskTest, WhatALayerOfPyTorchRaisesIsShown) {
  expect_rejected(
      {reference("small.pt"), "auto", {}, 1}, images("digits"),
      "small.pt cannot train on one sample: Expected more than 1 value per channel when training, got "
      "input size [1, 16]");
}

TEST_F(ScriptedTaskTest, DataThatItDoesNotTakeIsOneLineWithTheShape) {
  expect_rejected({lenet()}, images("synthetic:3x32x32:10:20"),
                  "does not take the data, an input of 2x3x32x32: Given groups=1");
  expect_rejected({lenet(), "mse"}, images(), "--loss mse: does not fit the target");
  expect_rejected({lenet()}, images("synthetic:1x28x28:11:20"), "a column for each of 11 classes");
}

}  // namespace
}  // namespace capstan::training
