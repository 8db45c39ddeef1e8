// TorchScript modules against networks of the zoo, and wrong ones.

#include "capstan/training/scripted_task.h"

#include <cmath>
#include <fstream>
#include <map>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/jit/api/module.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/checkpoint/torch_file.h"
#include "capstan/models/buffers.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/loopback_training.h"
#include "training/tasks.h"

namespace capstan::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using torch::jit::Module;

constexpr const char* kImages = "synthetic:1x28x28:10:200";

data::Dataset images(const std::string& name = kImages) {
  return data::load({name, "", 1});
}

// A layer with the parameters of a task.
Module layer(const std::string& name, const Task& of) {
  Module module(name);
  for (const auto& p : of.parameters())
    if (p.name.starts_with(name + "."))
      module.register_parameter(p.name.substr(name.size() + 1),
                                p.tensor.detach().clone().contiguous().requires_grad_(), false);
  return module;
}

class ScriptedTaskTest : public ::testing::Test {
 protected:
  std::filesystem::path save(const Module& module, const std::string& name = "net.pt") const {
    module.save((folder_ / name).string());
    return folder_ / name;
  }
  // LeNet with the initial weights of the zoo's.
  std::filesystem::path lenet() const {
    const auto zoo = classify(kImages);
    Module net("Net");
    for (const char* name : {"conv1", "conv2", "fc1", "fc2"}) net.register_module(name, layer(name, *zoo));
    net.define(R"(
def forward(self, x):
    x = torch.max_pool2d(torch.relu(torch.conv2d(x, self.conv1.weight, self.conv1.bias)), [2, 2])
    x = torch.max_pool2d(torch.relu(torch.conv2d(x, self.conv2.weight, self.conv2.bias)), [2, 2])
    x = torch.relu(torch.linear(x.flatten(1), self.fc1.weight, self.fc1.bias))
    return torch.linear(x, self.fc2.weight, self.fc2.bias)
)");
    return save(net);
  }
  // A linear layer on three numbers, with attributes that the code may use.
  Module linear(const char* code, at::ScalarType type = at::kFloat, const NamedTensors& buffers = {}) const {
    Module net("Net");
    net.register_parameter("weight", at::ones({1, 3}).to(type).requires_grad_(), false);
    for (const auto& buffer : buffers) net.register_buffer(buffer.name, buffer.tensor);
    net.register_attribute("number", c10::IntType::get(), std::int64_t{0});
    net.register_attribute("numbers", c10::ListType::ofInts(), std::vector<std::int64_t>{});
    net.define(code);
    return net;
  }
  static data::Dataset numbers() {
    const capstan::testing::TemporaryFolder folder;
    std::string text = "a,b,c,y\n";
    for (int i = 0; i < 20; ++i)
      text += std::to_string(i % 3) + "," + std::to_string(i % 5) + "," + std::to_string(i % 7) + "," +
              std::to_string(i % 3 + 2 * (i % 5) - i % 7) + "\n";
    capstan::testing::write_file(folder / "d.csv", text);
    data::DatasetOptions options;
    options.name = "csv:" + (folder / "d.csv").string() + ":target=y";
    options.normalize = data::Normalize::kNone;
    return data::load(options);
  }
  static std::filesystem::path reference(const std::string& file) {
    return std::filesystem::path(CAPSTAN_SOURCE_DIR) / "tests/reference/modules" / file;
  }
  // The state dict of tied.pt, with every name that PyTorch's has: "initial" or "trained".
  static std::map<std::string, std::vector<float>> tied_state(const std::string& when) {
    return nlohmann::json::parse(capstan::testing::contents(reference("tied.json")))[when];
  }
  static void expect_rejected(const ScriptedOptions& options, data::Dataset dataset,
                              const std::string& says) {
    try {
      (void)make_scripted_task(options, std::move(dataset));
      ADD_FAILURE() << "accepted: " << says;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(says), Not(HasSubstr("\n"))));
    }
  }

  const capstan::testing::TemporaryFolder folder_;
};

void expect_close(const Task& a, const Task& b, double tolerance) {
  ASSERT_EQ(a.parameters().size(), b.parameters().size());
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    EXPECT_EQ(a.parameters()[i].name, b.parameters()[i].name);
    const auto ours = a.parameters()[i].tensor.detach(), theirs = b.parameters()[i].tensor.detach();
    EXPECT_LT(((ours - theirs).abs() / theirs.abs().clamp_min(1)).max().item<float>(), tolerance)
        << a.parameters()[i].name;
  }
}

std::vector<float> values_of(const at::Tensor& tensor) {
  const auto plain = tensor.detach().to(at::kFloat).contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

TEST_F(ScriptedTaskTest, ACopyOfLeNetEndsAtTheWeightsOfTheZoos) {
  at::set_num_threads(1);
  const auto scripted = make_scripted_task({lenet(), "cross-entropy"}, images());
  const auto zoo = classify(kImages);
  SingleOptions options;
  options.batch_size = 32;
  options.max_steps = 30;
  options.optimizer.first.lr = 0.02;
  options.optimizer.first.momentum = 0.9;
  const auto ours = train_single(options, *scripted, {}), theirs = train_single(options, *zoo, {});
  expect_close(*scripted, *zoo, 1e-5);
  const auto tested = evaluate(*scripted), expected = evaluate(*zoo);
  EXPECT_EQ(tested->metrics, expected->metrics);
  for (std::size_t i = 0; i < tested->values.size(); ++i)
    EXPECT_NEAR(tested->values[i], expected->values[i], 1e-4);
}

TEST_F(ScriptedTaskTest, TrainsOnSeveralServersAsTheZoosLeNet) {
  at::set_num_threads(1);
  const auto file = lenet();
  for (const std::string strategy : {"sync", "local-sgd:2"}) {
    std::vector<std::unique_ptr<Task>> scripted, zoo;
    for (int i = 0; i < 2; ++i) {
      scripted.push_back(make_scripted_task({file}, images()));
      zoo.push_back(classify(kImages));
    }
    server::ServerOptions servers;
    servers.job.workers = servers.job.servers = 2;
    servers.job.strategy = strategy;
    servers.optimizer.first.lr = 0.02;
    WorkerOptions options;
    options.batch_size = 20;
    options.epochs = 2;
    capstan::testing::train_on_servers(servers, scripted, options);
    capstan::testing::train_on_servers(servers, zoo, options);
    expect_close(*scripted[0], *zoo[0], 1e-5);
  }
}

// PyTorch's rule: running = 0.9 running + 0.1 batch.
TEST_F(ScriptedTaskTest, HasTheModulesBuffers) {
  const auto task = make_scripted_task({reference("small.pt")}, images("digits"));
  ASSERT_EQ(task->buffers().size(), 3u);
  EXPECT_EQ(task->buffers()[0].name, "norm.running_mean");
  EXPECT_EQ(task->buffers()[2].name, "norm.num_batches_tracked");
  constexpr std::uint32_t kSome[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto batch = task->batch(Split::kTrain, {0, kSome});
  const auto fields = at::avg_pool2d(batch.input, 7).flatten(1);
  task->loss(0, batch);
  EXPECT_TRUE(at::allclose(task->buffers()[0].tensor, 0.1 * fields.mean(0), 1e-4, 1e-6));
  EXPECT_TRUE(at::allclose(task->buffers()[1].tensor, 0.9 + 0.1 * fields.var(0, true), 1e-4, 1e-6));
  task->train(false);
  task->loss(0, batch);
  EXPECT_EQ(task->buffers()[2].tensor.item<std::int64_t>(), 1) << "evaluation does not change them";
}

// The reference is the rule of the module's code: mean = 0.9 mean + 0.1 batch. backward() needs the mean of
// before.
TEST_F(ScriptedTaskTest, KeepsBuffersThatForwardAssigns) {
  const auto net = linear(R"(
def forward(self, x):
    y = torch.linear(x, self.weight * self.mean)
    self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
    return y
)",
                          at::kFloat, {{"mean", at::ones(3)}});
  const auto task = make_scripted_task({save(net)}, numbers());
  constexpr std::uint32_t kSome[] = {0, 1, 2, 5};
  const auto batch = task->batch(Split::kTrain, {0, kSome});
  const auto rows = batch.input.clone();
  const auto weight = task->parameters()[0].tensor;
  auto mean = task->buffers()[0].tensor.clone();
  for (const bool on : {true, true, false}) {
    task->train(on);
    weight.mutable_grad() = at::Tensor();
    task->loss(0, batch).backward();
    const auto error = (rows * mean).sum(1, true) - batch.target;  // the weight is 1
    EXPECT_TRUE(at::allclose(weight.grad(), (2 * error * rows * mean).mean(0, true), 1e-4, 1e-4));
    mean = 0.9 * mean + 0.1 * rows.mean(0);
    batch.input.fill_(7);  // the memory of a batch is used again
    EXPECT_TRUE(at::allclose(task->buffers()[0].tensor, mean, 1e-5, 1e-6));
    batch.input.copy_(rows);
  }
  const auto stored = models::copy_buffers_out(task->buffers());
  EXPECT_THAT(std::vector(stored.begin(), stored.begin() + 3), Pointwise(FloatNear(1e-5f), values_of(mean)));
  task->buffers()[0].tensor.fill_(0);  // as a checkpoint that is loaded
  EXPECT_EQ(evaluate(*task)->samples, 4u);
  EXPECT_LT(task->buffers()[0].tensor.max().item<float>(), 1)
      << "the module continues from the loaded values";
}

TEST_F(ScriptedTaskTest, AssignmentsThatChangeATensorAreOneLine) {
  const auto assign = [&](const std::string& line) {
    return "def forward(self, x):\n    y = torch.linear(x, self.weight)\n    " + line + "\n    return y\n";
  };
  const auto rejected = [&](const std::string& line, const std::string& says) {
    const auto shared = at::zeros({1, 1});
    const auto net = linear(assign(line).c_str(), at::kFloat,
                            {{"last", at::zeros({1, 1})}, {"one", shared}, {"two", shared}});
    expect_rejected({save(net)}, numbers(), says);
  };
  rejected(
      "self.last = y.detach()",
      "net.pt: last: assigns 2x1 of Float to a buffer that is 1x1 of Float; shape and type must not change");
  rejected("self.last = torch.zeros([1, 1], dtype=4)",
           "assigns 1x1 of Long to a buffer that is 1x1 of Float");
  rejected("self.one = self.one + 1", "one: assigns to one of two names of a buffer, the other is two");
  rejected("self.weight = self.weight + 1", "weight: assigns to a parameter");
}

// Every kind of state counts the calls of the module, and the output is their sum.
TEST_F(ScriptedTaskTest, TheTrialLeavesNoTrace) {
  const auto net = linear(R"(
def forward(self, x):
    self.assigned = self.assigned + 1
    self.in_place.add_(1)
    self.number += 1
    self.numbers.append(1)
    calls = self.assigned + self.in_place + self.number + len(self.numbers)
    return torch.linear(x, self.weight) * 0 + calls
)",
                          at::kFloat, {{"assigned", at::zeros(1)}, {"in_place", at::zeros(1)}});
  for (const std::uint64_t batch_size : {1, 2}) {
    const auto task = make_scripted_task({save(net), "l1", {}, batch_size}, numbers());
    for (const auto& buffer : task->buffers()) EXPECT_EQ(buffer.tensor.item<float>(), 0) << buffer.name;
    constexpr std::uint32_t kFirst[] = {0, 5};  // their targets are 0 and -4
    for (int call = 1; call <= 2; ++call) {
      const auto loss = task->loss(0, task->batch(Split::kTrain, {0, kFirst})).item<float>();
      EXPECT_FLOAT_EQ(loss, 4 * call + 2);
    }
  }
}

TEST_F(ScriptedTaskTest, ParametersWithoutGradientsAreBuffersAndSharedOnesCountOnce) {
  Module net("Net");
  const auto shared = at::ones({1, 3}).requires_grad_();
  net.register_parameter("first", shared, false);
  net.register_parameter("second", shared, false);
  net.register_parameter("fixed", at::full({1}, 5.0f).requires_grad_(false), false);
  net.define("def forward(self, x):\n    return torch.linear(x, self.first + self.second) + self.fixed\n");
  const auto task = make_scripted_task({save(net)}, numbers());
  ASSERT_EQ(task->parameters().size(), 1u);
  EXPECT_EQ(task->parameters()[0].name, "first");
  EXPECT_THAT(task->parameters()[0].aliases, ElementsAre("second"));
  ASSERT_EQ(task->buffers().size(), 1u);
  EXPECT_TRUE(task->buffers()[0].aliases.empty());
  EXPECT_EQ(task->buffers()[0].name, "fixed");
}

// What PyTorch computes for the same rows: tests/reference/make_modules.py.
TEST_F(ScriptedTaskTest, TiedWeightsAreTrainedAsByPyTorch) {
  const auto task = make_scripted_task({reference("tied.pt")}, numbers());
  SingleOptions options;
  options.batch_size = 16;
  options.epochs = 3;
  options.optimizer.first.lr = 0.01;
  options.optimizer.first.momentum = 0.9;
  const auto trained = train_single(options, *task, {});  // has the memory of the parameters
  const auto expected = tied_state("trained");
  std::size_t names = 0;
  for (const auto* list : {&task->parameters(), &task->buffers()}) {
    for (const auto& tensor : *list) {
      EXPECT_THAT(values_of(tensor.tensor), Pointwise(FloatNear(1e-5f), expected.at(tensor.name)))
          << tensor.name;
      for (const auto& alias : tensor.aliases) EXPECT_EQ(expected.at(alias), expected.at(tensor.name));
      names += 1 + tensor.aliases.size();
    }
  }
  EXPECT_EQ(names, expected.size());
}

class TiedStateDict : public ScriptedTaskTest {
 protected:
  using State = std::map<std::string, std::vector<float>>;

  ScriptedOptions with_weights(const State& state) const {
    std::vector<checkpoint::TensorView> views;
    for (const auto& [name, values] : state) {
      const auto count = static_cast<std::int64_t>(values.size());
      views.push_back({name,
                       count == 9   ? std::vector<std::int64_t>{3, 3}
                       : count == 1 ? std::vector<std::int64_t>{}
                                    : std::vector{count},
                       values});
    }
    checkpoint::write_safetensors(folder_ / "w.safetensors", views);
    return {reference("tied.pt"), "auto", folder_ / "w.safetensors"};
  }
};

// PyTorch's state_dict() has every name; safetensors' save_model() keeps one of them, not always the first.
TEST_F(TiedStateDict, MayHaveEveryNameOrAnyOne) {
  const auto all = tied_state("trained");
  auto first = all, other = all;
  for (const auto& [name, values] : all) {
    if (name.starts_with("last.") || name == "decoder.weight") first.erase(name);
    if (name.starts_with("norm.") || name == "encoder.weight") other.erase(name);
  }
  for (const auto& state : {all, first, other}) {
    const auto task = make_scripted_task(with_weights(state), numbers());
    for (const auto* list : {&task->parameters(), &task->buffers()})
      for (const auto& tensor : *list)
        EXPECT_EQ(values_of(tensor.tensor), all.at(tensor.name)) << tensor.name;
  }
}

TEST_F(TiedStateDict, WithTwoValuesOfOneTensorIsRejected) {
  auto state = tied_state("trained");
  state["decoder.weight"][8] = std::nextafter(state["decoder.weight"][8], 9.0f);
  expect_rejected(
      with_weights(state), numbers(),
      "w.safetensors has the weights of another network: tensors encoder.weight and decoder.weight "
      "have different values and are one tensor in the network");
  state["decoder.weight"].resize(3);
  expect_rejected(with_weights(state), numbers(), "tensor decoder.weight has shape 3 and should have 3x3");
  state.erase("decoder.weight");
  state.erase("encoder.weight");
  expect_rejected(with_weights(state), numbers(), "tensor encoder.weight (3x3) is missing");
}

TEST_F(ScriptedTaskTest, MayHaveALossOfItsOwn) {
  const auto task = make_scripted_task({reference("regression.pt"), "module"}, numbers());
  constexpr std::uint32_t kSome[] = {0, 1, 2};
  const auto batch = task->batch(Split::kTrain, {0, kSome});
  const auto output = at::linear(batch.input, task->parameters()[0].tensor, task->parameters()[1].tensor);
  EXPECT_FLOAT_EQ(task->loss(0, batch).item<float>(), (output - batch.target).abs().mean().item<float>());
  EXPECT_EQ(task->metrics().size(), 1u);
}

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

TEST_F(ScriptedTaskTest, EveryStrategyTrainsIt) {
  at::set_num_threads(1);
  const auto file = reference("small.pt");
  for (const auto& entry : strategy::table()) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int i = 0; i < 2; ++i) tasks.push_back(make_scripted_task({file}, images("digits")));
    const auto before = evaluate(*tasks[0])->values[1];
    server::ServerOptions servers;
    servers.job.workers = 2;
    servers.job.strategy = entry.name;
    servers.optimizer.first.lr = 0.02;
    WorkerOptions options;
    options.epochs = 4;
    capstan::testing::train_on_servers(servers, tasks, options);
    EXPECT_LT(evaluate(*tasks[0])->values[1], before) << entry.name << ": the loss falls";
  }
}

// As in the networks of the zoo: running statistics in place of those of one sample, which has no variance.
TEST_F(ScriptedTaskTest, ALastBatchOfOneSampleUsesTheRunningStatistics) {
  const auto file = reference("small.pt");
  const auto task = make_scripted_task({file}, images("digits"));
  constexpr std::uint32_t kOne[] = {3};
  const auto batch = task->batch(Split::kTrain, {0, kOne});
  const auto found = task->loss(0, batch).item<float>();
  EXPECT_EQ(task->buffers()[2].tensor.item<std::int64_t>(), 0) << "they do not change";
  task->train(false);
  EXPECT_EQ(task->loss(0, batch).item<float>(), found);
  expect_rejected({file, "auto", {}, 1}, images("digits"),
                  "--batch-size 1: small.pt cannot train on one sample");
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
