// What training loops report of their steps.
#include "capstan/training/step_times.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>

#include "capstan/torch/tensor_task.h"
#include "capstan/training/single.h"

#include "training/loopback_training.h"

namespace capstan::training {
namespace {

constexpr std::int64_t kSamples = 12, kInputs = 3;

// Samples are 0, 1, …, and the loss of a batch at zero weights is the mean of their squares.
std::unique_ptr<Task> make_task() {
  auto module = std::make_shared<torch::nn::LinearImpl>(kInputs, 1);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.zero_();
  const TensorData data{torch::ones({kSamples, kInputs}),
                        torch::arange(kSamples).to(torch::kFloat).view({-1, 1})};
  return std::make_unique<TensorTask>(module, data, data, [module](const auto& input, const auto& target) {
    return torch::nn::functional::mse_loss(module->forward(input), target);
  });
}

struct Seen {
  StepTimes times;
  std::vector<PhaseTimes> phases;
};

StepObserver collect(std::vector<Seen>& to) {
  return [&to](const StepTimes& times) { to.push_back({times, {times.phases.begin(), times.phases.end()}}); };
}

void expect_in_order(const StepTimes& times, const PhaseTimes& phase) {
  EXPECT_LE(times.begin, times.data_end);
  EXPECT_LE(times.data_end, phase.forward_begin);
  EXPECT_LT(phase.forward_begin, phase.forward_end);
  EXPECT_LT(phase.forward_end, phase.backward_end);
  EXPECT_LE(phase.backward_end, times.end);
}

std::vector<Seen> train_on_servers(const char* strategy) {
  server::ServerOptions server;
  server.job.strategy = strategy;
  server.optimizer = optimizer::Options{.lr = 0};
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(make_task());
  std::vector<Seen> seen;
  WorkerOptions options;
  options.batch_size = 4;
  options.epochs = 2;
  options.on_step = collect(seen);
  options.split = {10, SampleOrder::kOwn};  // batches of 4, 4 and 2 samples
  testing::train_on_servers(server, tasks, options);
  return seen;
}

// The means of squares of 0 … 3, 4 … 7 and 8 … 9.
constexpr double kLosses[] = {14 / 4.0, 126 / 4.0, 145 / 2.0};
constexpr std::uint64_t kBatches[] = {4, 4, 2};

void expect_steps(const std::vector<Seen>& seen) {
  ASSERT_EQ(seen.size(), 6u);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto& times = seen[i].times;
    EXPECT_EQ(times.epoch, i / 3);
    EXPECT_EQ(times.index, i % 3);
    EXPECT_EQ(times.samples, kBatches[i % 3]);
    EXPECT_NEAR(times.loss, kLosses[i % 3], 1e-4);
    ASSERT_EQ(seen[i].phases.size(), 1u);
    expect_in_order(times, seen[i].phases[0]);
    if (i == 0) continue;
    EXPECT_GE(times.begin, seen[i - 1].times.end);
  }
}

TEST(StepTimes, OfAWorkerHaveAnExchangeInEachStep) {
  const auto seen = train_on_servers("sync");
  expect_steps(seen);
  for (const auto& [times, phases] : seen) {
    EXPECT_LE(phases[0].backward_end, phases[0].exchange_begin);
    EXPECT_LT(phases[0].exchange_begin, phases[0].exchange_end);
    EXPECT_LE(phases[0].exchange_end, times.end);
    EXPECT_EQ(phases[0].optimizer_begin, phases[0].optimizer_end);
  }
}

TEST(StepTimes, OfLocalStepsHaveAnExchangeAtTheEndOfARound) {
  const auto seen = train_on_servers("local-sgd:4");
  expect_steps(seen);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto& phase = seen[i].phases[0];
    EXPECT_EQ(phase.exchange_begin < phase.exchange_end, i == 3 || i == 5) << i;
    EXPECT_LT(phase.optimizer_begin, phase.optimizer_end);
  }
}

TEST(StepTimes, OfASingleProcessHaveTheOptimizer) {
  SingleOptions options;
  options.batch_size = 4;
  options.epochs = 2;
  options.optimizer = optimizer::Options{.lr = 0};
  options.split = {10, SampleOrder::kOwn};
  std::vector<Seen> seen;
  const auto task = make_task();
  SingleCallbacks callbacks;
  callbacks.on_times = collect(seen);
  const auto result = train_single(options, *task, callbacks);
  expect_steps(seen);
  for (const auto& [times, phases] : seen) {
    EXPECT_EQ(phases[0].exchange_begin, phases[0].exchange_end);
    EXPECT_LT(phases[0].optimizer_begin, phases[0].optimizer_end);
  }
}

}  // namespace
}  // namespace capstan::training
