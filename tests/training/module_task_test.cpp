// Modules as tasks: what is collected, and one job against a plain libtorch loop.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "capstan/torch/tensor_task.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/step.h"
#include "capstan/user_error.h"

#include "training/loopback_training.h"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> out;
  for (const auto& t : tensors) out.push_back(t.name);
  return out;
}

// A task without data, for what ModuleTask itself does.
class Collected final : public ModuleTask {
 public:
  using ModuleTask::ModuleTask;
  SplitInfo split(Split) const override { return {}; }
  Batch batch(Split, const BatchRequest&) override { return {}; }
  at::Tensor loss(std::size_t, const Batch&) override { return {}; }
  std::vector<Metric> metrics() const override { return {}; }
  std::vector<MetricSum> evaluate(const Batch&) override { return {}; }
};

std::string complaint(const std::function<void()>& run) {
  try {
    run();
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

// Batch norm has buffers; the last layer is the first one again, and one layer is frozen.
struct Net : torch::nn::Module {
  Net() {
    register_module("first", first);
    register_module("norm", norm);
    register_module("frozen", frozen);
    register_module("again", first);
    for (auto& p : frozen->parameters()) p.set_requires_grad(false);
  }
  torch::nn::Linear first{3, 3}, frozen{3, 2};
  torch::nn::BatchNorm1d norm{3};
};

TEST(ModuleTask, ListsEveryTensorOnceAndFrozenOnesAsBuffers) {
  const auto net = std::make_shared<Net>();
  Collected task(net);
  EXPECT_THAT(names(task.parameters()),
              ElementsAre("first.weight", "first.bias", "norm.weight", "norm.bias"));
  EXPECT_THAT(names(task.buffers()), ElementsAre("frozen.weight", "frozen.bias", "norm.running_mean",
                                                 "norm.running_var", "norm.num_batches_tracked"));
  EXPECT_TRUE(task.parameters()[0].tensor.is_same(net->first->weight));
  EXPECT_THAT(task.parameters()[0].aliases, ElementsAre("again.weight"));
  EXPECT_THAT(task.parameters()[1].aliases, ElementsAre("again.bias"));
  EXPECT_TRUE(task.parameters()[2].aliases.empty());
  task.train(false);
  EXPECT_FALSE(net->norm->is_training());
  task.train(true);
  EXPECT_TRUE(net->norm->is_training());
}

TEST(ModuleTask, RefusesWhatCannotBeTrained) {
  const auto net = std::make_shared<Net>();
  net->norm->to(torch::kDouble);
  EXPECT_THAT(
      complaint([&] { Collected task(net); }),
      HasSubstr("parameter norm.weight has the type Double: Capstan trains parameters of 32-bit floats"));
  EXPECT_THAT(complaint([] { Collected task(torch::nn::ReLU().ptr()); }), HasSubstr("has no parameter"));
  EXPECT_THAT(complaint([] { Collected task(nullptr); }), HasSubstr("needs a module"));
}

// y = 2 x₀ − x₁ + 0.5 on sixteen points.
TensorData points() {
  const auto x = torch::stack({torch::linspace(-1, 1, 16), torch::linspace(0, 3, 16).sin()}, 1);
  return {x, x.matmul(torch::tensor({2.0f, -1.0f})).unsqueeze(1) + 0.5};
}

std::shared_ptr<torch::nn::LinearImpl> linear() {
  torch::manual_seed(5);
  return torch::nn::Linear(2, 1).ptr();
}

at::Tensor squared_error(torch::nn::LinearImpl& model, const at::Tensor& input, const at::Tensor& target) {
  return torch::mse_loss(model.forward(input), target);
}

std::unique_ptr<TensorTask> regression(TensorData train = points(), TensorData test = points()) {
  const auto model = linear();
  const auto loss = [model](const auto& x, const auto& y) { return squared_error(*model, x, y); };
  const auto absolute = [model](const auto& x, const auto& y) {
    return torch::l1_loss(model->forward(x), y);
  };
  return std::make_unique<TensorTask>(model, std::move(train), std::move(test), loss,
                                      std::vector<TensorTask::MeasuredMetric>{{{"mae"}, absolute}});
}

TEST(TensorTask, ABatchHasTheRequestedSamples) {
  const auto task = regression();
  EXPECT_EQ(task->split(Split::kTrain).samples, 16u);
  const std::vector<std::uint32_t> wanted = {3, 0, 15};
  const auto batch = task->batch(Split::kTrain, {0, wanted});
  EXPECT_EQ(batch.samples, 3u);
  const auto all = points();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(batch.input[static_cast<int>(i)].equal(all.input[wanted[i]]));
    EXPECT_TRUE(batch.target[static_cast<int>(i)].equal(all.target[wanted[i]]));
  }
}

// The test set has 16 samples, in batches of 5: the last one counts for its one sample.
TEST(TensorTask, MetricsAreMeansOverTheTestSet) {
  const auto task = regression();
  const auto result = training::evaluate(*task, {.batch = 5});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->metrics.size(), 2u);
  EXPECT_EQ(result->metrics[0].name, "mae");
  EXPECT_EQ(result->metrics[1].name, "loss");
  const auto model = linear();
  const auto difference = model->forward(points().input) - points().target;
  EXPECT_NEAR(result->values[0], difference.abs().mean().item<double>(), 1e-6);
  EXPECT_NEAR(result->values[1], difference.square().mean().item<double>(), 1e-6);
}

TEST(TensorTask, RefusesDataThatDoesNotFit) {
  EXPECT_EQ(complaint([] {
              regression({torch::zeros({4, 2}), torch::zeros({3, 1})});
            }),
            "the training data has 4 inputs and 3 targets: give one target per input");
  EXPECT_EQ(complaint([] {
              regression(points(), {torch::zeros({0, 2}), torch::zeros({0, 1})});
            }),
            "the test data has no samples");
  EXPECT_THAT(complaint([] {
                regression(points(), {torch::zeros({4, 2}), {}});
              }),
              HasSubstr("the target of the test data has no samples"));
}

// Two workers with half of the data each: every update is one of the whole set.
TEST(TensorTask, TrainsAsAPlainLoop) {
  constexpr int kUpdates = 7;
  server::ServerOptions servers;
  servers.job.workers = 2;
  servers.job.servers = 2;
  servers.job.strategy = "sync";
  servers.optimizer.first.lr = 0.1;
  servers.optimizer.first.momentum = 0.9;
  std::vector<std::unique_ptr<Task>> tasks;
  for (int worker = 0; worker < 2; ++worker) tasks.push_back(regression());
  training::WorkerOptions options;
  options.batch_size = 8;
  options.epochs = kUpdates;
  testing::train_on_servers(servers, tasks, options);

  const auto model = linear();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto data = points();
  for (int update = 0; update < kUpdates; ++update) {
    optimizer.zero_grad();
    squared_error(*model, data.input, data.target).backward();
    optimizer.step();
  }
  for (const auto& task : tasks) {
    EXPECT_TRUE(torch::allclose(task->parameters()[0].tensor, model->weight, 1e-6, 1e-6));
    EXPECT_TRUE(torch::allclose(task->parameters()[1].tensor, model->bias, 1e-6, 1e-6));
  }
}

// The one line of what a step reports for this loss.
std::string complaint_of_loss(const TensorTask::BatchMean& loss) {
  TensorTask task(linear(), points(), points(), loss);
  const auto layout = models::layout_of(task.parameters());
  std::vector<float> gradients(layout.size());
  models::GradientArena arena(task.parameters(), layout, gradients);
  const std::vector<std::uint32_t> samples = {0, 1, 2};
  const auto batch = task.batch(Split::kTrain, {0, samples});
  return complaint([&] { (void)training::compute_gradients(task, 0, arena, batch); });
}

TEST(TaskErrors, AFailedLossIsOneLine) {
  const auto model = linear();
  EXPECT_EQ(complaint_of_loss([&](const auto& x, const auto&) {
              return model->forward(x.view({2, 3}));
            }),
            "loss() of the task failed: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x1)");
  EXPECT_EQ(complaint_of_loss(
                [](const auto&, const auto&) -> at::Tensor { throw std::runtime_error("no more\nlines"); }),
            "loss() of the task failed: no more");
  EXPECT_EQ(complaint_of_loss([](const auto&, const auto&) -> at::Tensor { throw 3; }),
            "loss() of the task failed: it threw an object that is no std::exception");
  EXPECT_EQ(complaint_of_loss([](const auto&, const auto&) -> at::Tensor { throw UserError("mine"); }),
            "mine");
}

TEST(TaskErrors, ALossMustBeAScalarWithGradients) {
  const auto model = linear();
  EXPECT_THAT(complaint_of_loss([&](const auto& x, const auto& y) { return model->forward(x) - y; }),
              HasSubstr("returned a tensor of shape 3x1: it must return a scalar"));
  EXPECT_THAT(complaint_of_loss([](const auto& x, const auto&) { return x.mean(); }),
              HasSubstr("returned a tensor without gradients"));
  EXPECT_THAT(complaint_of_loss([](const auto&, const auto&) { return at::Tensor(); }),
              HasSubstr("returned no tensor"));
}

TEST(TaskErrors, AFailedMetricIsOneLine) {
  const auto evaluated = [](const TensorTask::BatchMean& metric) {
    TensorTask task(linear(), points(), points(), metric);
    return complaint([&] { (void)training::evaluate(task); });
  };
  EXPECT_THAT(evaluated([](const auto& x, const auto& y) { return x.matmul(y); }),
              HasSubstr("evaluate() of the task failed: "));
  EXPECT_EQ(evaluated([](const auto& x, const auto&) { return x; }),
            "metric loss must be a scalar, the mean over a batch; it has the shape 16x2");
}

}  // namespace
}  // namespace capstan
