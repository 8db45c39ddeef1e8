// TorchScript modules against networks of the zoo and against PyTorch.

#include "capstan/training/scripted_task.h"

#include <map>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/jit/api/module.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/models/buffers.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/loopback_training.h"
#include "training/scripted_modules.h"

namespace capstan::training {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;
using torch::jit::Module;

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

TEST_F(ScriptedTaskTest, SparseEmbeddingsAreTrainedAsByPyTorch) {
  const auto task = make_scripted_task({reference("bags.pt")}, numbers());
  SingleOptions options;
  options.batch_size = 16;
  options.epochs = 3;
  options.optimizer.first.lr = 0.01;
  const auto trained = train_single(options, *task, {});  // has the memory of the parameters
  const std::map<std::string, std::vector<float>> expected =
      nlohmann::json::parse(capstan::testing::contents(reference("bags.json")))["trained"];
  ASSERT_EQ(task->parameters().size(), expected.size());
  for (const auto& parameter : task->parameters()) {
    EXPECT_EQ(parameter.sparse, parameter.name == "bag.weight") << parameter.name;
    EXPECT_THAT(values_of(parameter.tensor), Pointwise(FloatNear(1e-5f), expected.at(parameter.name)))
        << parameter.name;
  }
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

}  // namespace
}  // namespace capstan::training
