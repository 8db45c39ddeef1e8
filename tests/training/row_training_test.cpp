// Tasks with sparse gradients, trained in every way, against plain loops with torch::optim.
#include <barrier>
#include <cmath>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim.h>

#include "capstan/models/arena.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/torch/tensor_task.h"
#include "capstan/training/single.h"
#include "capstan/training/step.h"
#include "capstan/user_error.h"

#include "training/loopback_training.h"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSamples = 16, kIds = 4;
constexpr std::int64_t kRows = 700, kColumns = 9;  // several pages, so that two servers cut the table
constexpr int kUpdates = 12;

struct Model : torch::nn::Module {
  explicit Model(bool sparse = true)
      : bag(register_module(
            "bag", torch::nn::EmbeddingBag(
                       torch::nn::EmbeddingBagOptions(kRows, kColumns).sparse(sparse).mode(torch::kSum)))),
        out(register_module("out", torch::nn::Linear(kColumns, 1))) {
    torch::manual_seed(3);
    const torch::NoGradGuard no_grad;
    bag->weight.normal_(0, 0.3);
    out->weight.normal_();
    out->bias.normal_();
  }
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& target) {
    return torch::nn::functional::mse_loss(out(bag(ids)), target);
  }
  torch::nn::EmbeddingBag bag;
  torch::nn::Linear out;
};

// Bags with repeated ids; most rows are in no bag.
TensorData bags() {
  torch::manual_seed(5);
  return {torch::randint(0, kRows, {kSamples, kIds}).remainder(90) * 7, torch::randn({kSamples, 1})};
}

std::unique_ptr<TensorTask> make_task(const std::shared_ptr<Model>& model = std::make_shared<Model>()) {
  return std::make_unique<TensorTask>(model, bags(), bags(), [model](const auto& ids, const auto& target) {
    return model->loss(ids, target);
  });
}

// ---- the references: plain loops over all samples ----

void step_with(torch::optim::Optimizer& optimizer, Model& model) {
  const auto data = bags();
  optimizer.zero_grad();
  model.loss(data.input, data.target).backward();
  optimizer.step();
}

std::shared_ptr<Model> trained_by_sgd() {
  auto model = std::make_shared<Model>();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  for (int i = 0; i < kUpdates; ++i) step_with(optimizer, *model);
  return model;
}

std::shared_ptr<Model> trained_by_adagrad() {
  auto model = std::make_shared<Model>();
  torch::optim::Adagrad optimizer(model->parameters(), torch::optim::AdagradOptions(0.1));
  for (int i = 0; i < kUpdates; ++i) step_with(optimizer, *model);
  return model;
}

// libtorch has no SparseAdam: its rule in operations on whole rows, for the table; sgd for the rest.
std::shared_ptr<Model> trained_by_sparse_adam() {
  auto model = std::make_shared<Model>();
  torch::optim::SGD optimizer(model->out->parameters(), torch::optim::SGDOptions(0.1));
  auto m = torch::zeros({kRows, kColumns}, torch::kDouble), v = torch::zeros_like(m);
  auto weight = model->bag->weight;
  for (int t = 1; t <= kUpdates; ++t) {
    weight.mutable_grad().reset();
    step_with(optimizer, *model);
    const torch::NoGradGuard no_grad;
    const auto gradient = weight.grad().coalesce();
    const auto rows = gradient.indices()[0];
    const auto g = gradient.values().to(torch::kDouble);
    m.index_copy_(0, rows, 0.9 * m.index_select(0, rows) + 0.1 * g);
    v.index_copy_(0, rows, 0.999 * v.index_select(0, rows) + 0.001 * g * g);
    const double size = 0.02 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    const auto change = size * m.index_select(0, rows) / (v.index_select(0, rows).sqrt() + 1e-8);
    weight.index_add_(0, rows, -change.to(torch::kFloat));
  }
  return model;
}

struct Case {
  const char* optimizer;
  std::shared_ptr<Model> (*reference)();
};
const Case kCases[] = {{"sgd:lr=0.1", trained_by_sgd},
                       {"adagrad:lr=0.1", trained_by_adagrad},
                       {"default=sgd:lr=0.1,bag.*=sparse-adam:lr=0.02", trained_by_sparse_adam}};

void expect_equal(const Task& task, const Model& expected) {
  const auto names = expected.named_parameters();
  for (const auto& parameter : task.parameters()) {
    const auto difference = (parameter.tensor - *names.find(parameter.name)).abs().max().item<double>();
    EXPECT_LT(difference, 2e-6) << parameter.name;
  }
}

optimizer::Spec spec(const char* text) {
  return optimizer::parse_spec(text, optimizer::defaults);
}

// ---- the ways to train ----

TEST(RowTraining, OnServersEqualsAPlainLoop) {
  for (const auto& [optimizer, reference] : kCases) {
    const auto expected = reference();
    for (const std::uint32_t servers : {1u, 2u}) {
      for (const bool shares : {true, false}) {
        SCOPED_TRACE(fmt::format("{}, {} servers, shared memory: {}", optimizer, servers, shares));
        server::ServerOptions options;
        options.job.workers = 2;
        options.job.servers = servers;
        options.optimizer = spec(optimizer);
        std::vector<std::unique_ptr<Task>> tasks;
        for (int worker = 0; worker < 2; ++worker) tasks.push_back(make_task());
        training::WorkerOptions worker;
        worker.batch_size = kSamples / 2;
        worker.epochs = kUpdates;
        testing::train_on_servers(options, tasks, worker, shares);
        for (const auto& task : tasks) expect_equal(*task, *expected);
      }
    }
  }
}

// With one worker, local steps are those of the plain loop. The pushes carry whole tensors.
TEST(RowTraining, WithLocalStepsEqualsAPlainLoop) {
  for (const auto& [optimizer, reference] : kCases) {
    SCOPED_TRACE(optimizer);
    server::ServerOptions options;
    options.job.workers = 1;
    options.job.strategy = "local-sgd:3";
    options.optimizer = spec(optimizer);
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.push_back(make_task());
    training::WorkerOptions worker;
    worker.batch_size = kSamples;
    worker.epochs = kUpdates;
    testing::train_on_servers(options, tasks, worker);
    expect_equal(*tasks[0], *reference());
  }
}

training::SingleOptions single_options(const char* optimizer) {
  training::SingleOptions options;
  options.batch_size = kSamples;
  options.epochs = kUpdates;
  options.optimizer = spec(optimizer);
  return options;
}

TEST(RowTraining, InASingleProcessEqualsAPlainLoop) {
  for (const auto& [optimizer, reference] : kCases) {
    SCOPED_TRACE(optimizer);
    const auto task = make_task();
    const auto result = training::train_single(single_options(optimizer), *task, {});
    expect_equal(*task, *reference());
  }
}

// Two threads in place of two processes: each adds its array to a sum, and takes it.
TEST(RowTraining, InAGroupEqualsAPlainLoop) {
  for (const auto& [optimizer, reference] : kCases) {
    SCOPED_TRACE(optimizer);
    const auto expected = reference();
    std::vector<float> sum;
    std::mutex mutex;
    std::barrier<> all(2);
    std::vector<std::unique_ptr<TensorTask>> tasks;  // made here: models seed one generator
    for (int worker = 0; worker < 2; ++worker) tasks.push_back(make_task());
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank, name = optimizer] {
        auto options = single_options(name);
        options.batch_size = kSamples / 2;
        options.group = {rank, 2, [&](std::span<float> values) {
                           {
                             const std::lock_guard lock(mutex);
                             sum.resize(values.size());
                             for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
                           }
                           all.arrive_and_wait();
                           std::ranges::copy(sum, values.begin());
                           all.arrive_and_wait();
                           {
                             const std::lock_guard lock(mutex);
                             sum.clear();
                           }
                           all.arrive_and_wait();
                         }};
        const auto result = training::train_single(options, *tasks[rank], {});
        expect_equal(*tasks[rank], *expected);
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

// ---- the task ----

TEST(RowTask, OfAModuleDeclaresItsEmbeddings) {
  const auto sparse = make_task();
  for (const auto& parameter : sparse->parameters())
    EXPECT_EQ(parameter.sparse, parameter.name == "bag.weight") << parameter.name;
  for (const auto& parameter : make_task(std::make_shared<Model>(false))->parameters())
    EXPECT_FALSE(parameter.sparse) << parameter.name;
  const auto layout = models::layout_of(sparse->parameters());
  EXPECT_TRUE(layout.tensors()[*layout.find("bag.weight")].sparse);
}

struct Steps {
  explicit Steps(const NamedTensors& of)
      : parameters(of),
        layout(models::layout_of(of)),
        gradients(layout.size()),
        arena(of, layout, gradients) {}
  at::Tensor gradient(const std::string& name) {
    return models::tensor_in(layout, *layout.find(name), gradients.data());
  }
  const NamedTensors parameters;
  const FlatLayout layout;
  std::vector<float> gradients;
  models::GradientArena arena;
};

TEST(RowGradients, AreTheRowsOfAPassAtTheirPlaces) {
  auto model = std::make_shared<Model>();
  const auto task = make_task(model);
  Steps steps(task->parameters());
  Model dense(false);
  const auto data = bags();
  const auto table = *steps.layout.find("bag.weight");
  for (const std::int64_t count : {3, 16, 1}) {  // the rows of one pass are zero in the next
    const auto ids = data.input.narrow(0, 0, count), target = data.target.narrow(0, 0, count);
    steps.arena.begin();
    model->loss(ids, target).backward();
    steps.arena.finish();
    dense.zero_grad();
    dense.loss(ids, target).backward();
    EXPECT_TRUE(torch::allclose(steps.gradient("bag.weight"), dense.bag->weight.grad(), 1e-6, 1e-6));
    const auto expected = std::get<0>(at::_unique(ids.flatten(), true)).to(at::kInt);
    const auto& rows = steps.arena.rows()[table];
    ASSERT_EQ(static_cast<std::int64_t>(rows.size()), expected.numel());
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(static_cast<std::int32_t>(rows[i]),
                expected[static_cast<std::int64_t>(i)].item<std::int32_t>());
    EXPECT_FALSE(model->bag->weight.grad().defined());
  }
  steps.arena.begin();
  steps.arena.finish();
  EXPECT_THAT(steps.arena.rows()[table], IsEmpty());
  EXPECT_EQ(steps.gradient("bag.weight").abs().max().item<float>(), 0);
}

// A gradient that is dense, although it was declared sparse, has all rows.
TEST(RowGradients, ThatAreDenseHaveAllRows) {
  auto model = std::make_shared<Model>(false);
  auto parameters = make_task(model)->parameters();
  for (auto& parameter : parameters) parameter.sparse = parameter.name == "bag.weight";
  Steps steps(parameters);
  const auto data = bags();
  steps.arena.begin();
  model->loss(data.input, data.target).backward();
  steps.arena.finish();
  const auto& rows = steps.arena.rows()[*steps.layout.find("bag.weight")];
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kRows));
  for (std::uint32_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], i);
}

TEST(RowGradients, ThatAreNotDeclaredAreOneLine) {
  const auto model = std::make_shared<Model>();
  struct Undeclared final : TensorTask {
    using TensorTask::TensorTask;
    const NamedTensors& parameters() const override {
      if (mine.empty()) mine = TensorTask::parameters();
      for (auto& parameter : mine) parameter.sparse = false;
      return mine;
    }
    mutable NamedTensors mine;
  };
  Undeclared task(model, bags(), bags(),
                  [model](const auto& ids, const auto& target) { return model->loss(ids, target); });
  Steps steps(task.parameters());
  const std::vector<std::uint32_t> samples = {0, 1};
  const auto batch = task.batch(Split::kTrain, {0, samples});
  try {
    (void)training::compute_gradients(task, 0, steps.arena, batch);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "parameter bag.weight has a sparse gradient, which its task does not declare: set "
                 "NamedTensor::sparse, or make the layer with sparse(false)");
  }
}

}  // namespace
}  // namespace capstan
