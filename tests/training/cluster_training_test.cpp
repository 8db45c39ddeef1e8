// Training through servers against plain libtorch loops.

#include <thread>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "capstan/data/dataset.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"
#include "capstan/models/registry.h"
#include "capstan/training/batch.h"
#include "capstan/training/classification.h"
#include "capstan/training/worker.h"

#include "training/loopback_training.h"

namespace capstan {
namespace {

using testing::LoopbackCluster;

server::ServerOptions job(std::uint32_t workers, std::uint32_t servers, const std::string& strategy,
                          double lr) {
  server::ServerOptions options;
  options.job.workers = workers;
  options.job.servers = servers;
  options.job.strategy = strategy;
  options.optimizer.first.lr = lr;
  options.optimizer.first.momentum = 0.9;
  options.threads = 2;
  return options;
}

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const auto limit = tolerance * at::max(at::abs(b), at::ones_like(b));
  EXPECT_TRUE((at::abs(a - b) <= limit).all().item<bool>())
      << "largest difference " << at::abs(a - b).max().item<float>();
}

// ---- the batch-updating server: Linear(100, 30), L1 loss against zeros, batch 20, 4 batches ----

constexpr int kBatches = 4;

at::Tensor input(int trainer, int batch) {
  torch::manual_seed(1000 + 10 * trainer + batch);
  return torch::rand({20, 100});
}

struct Linear {
  at::Tensor weight, bias;
  at::Tensor loss(const at::Tensor& x) const {
    const auto y = torch::nn::functional::linear(x, weight, bias);
    return torch::nn::functional::l1_loss(y, torch::zeros_like(y));
  }
};

Linear initial_linear() {
  torch::manual_seed(7);
  torch::nn::Linear layer(100, 30);
  return {layer->weight.detach().clone(), layer->bias.detach().clone()};
}

Linear reference_linear(int trainers) {
  auto model = initial_linear();
  model.weight.requires_grad_();
  model.bias.requires_grad_();
  torch::optim::SGD optimizer({model.weight, model.bias}, torch::optim::SGDOptions(0.001).momentum(0.9));
  for (int batch = 0; batch < kBatches; ++batch) {
    optimizer.zero_grad();
    for (int t = 0; t < trainers; ++t) (model.loss(input(t, batch)) / trainers).backward();
    optimizer.step();
  }
  return {model.weight.detach(), model.bias.detach()};
}

// Inputs and initial weights are made beforehand, since all threads share libtorch's generator.
Linear trained_by(LoopbackCluster& cluster, std::uint32_t rank, const Linear& start,
                  const std::vector<at::Tensor>& inputs) {
  const FlatLayout layout({{"weight", {30, 100}}, {"bias", {30}}});
  std::vector<float> initial(layout.size());
  std::copy_n(start.weight.data_ptr<float>(), 3000,
              initial.begin() + static_cast<std::ptrdiff_t>(layout.offset(0)));
  std::copy_n(start.bias.data_ptr<float>(), 30,
              initial.begin() + static_cast<std::ptrdiff_t>(layout.offset(1)));
  auto client =
      client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(), layout, initial);
  EXPECT_TRUE(client) << client.status().message();
  const auto view = [&] {
    const auto* flat = (*client)->weights().data();
    return Linear{models::tensor_in(layout, 0, const_cast<float*>(flat)).clone(),
                  models::tensor_in(layout, 1, const_cast<float*>(flat)).clone()};
  };
  EXPECT_TRUE((*client)->pull());
  for (const auto& x : inputs) {
    auto model = view();
    model.weight.requires_grad_();
    model.bias.requires_grad_();
    model.loss(x).backward();
    models::tensor_in(layout, 0, (*client)->gradients().data()).copy_(model.weight.grad());
    models::tensor_in(layout, 1, (*client)->gradients().data()).copy_(model.bias.grad());
    EXPECT_TRUE((*client)->push_pull({20, 0, 0}));
  }
  auto last = view();
  (*client)->leave();
  return last;
}

TEST(BatchUpdatingServer, GivesTheWeightsOfAPlainLoop) {
  for (const int trainers : {1, 2, 5}) {
    LoopbackCluster cluster(true, job(static_cast<std::uint32_t>(trainers), 1, "batch", 0.001));
    std::vector<Linear> seen(static_cast<std::size_t>(trainers));
    const auto start = initial_linear();
    std::vector<std::thread> threads;
    for (int t = 0; t < trainers; ++t) {
      std::vector<at::Tensor> inputs;
      for (int batch = 0; batch < kBatches; ++batch) inputs.push_back(input(t, batch));
      threads.emplace_back([&, t, inputs] {
        seen[static_cast<std::size_t>(t)] = trained_by(cluster, static_cast<std::uint32_t>(t), start, inputs);
      });
    }
    for (auto& thread : threads) thread.join();
    const auto expected = reference_linear(trainers);
    for (const auto& model : seen) {
      expect_close(model.weight, expected.weight, 1e-6);
      expect_close(model.bias, expected.bias, 1e-6);
    }
  }
}

// ---- LeNet: N workers in sync equal one process on the concatenated batch ----

constexpr std::uint64_t kSeed = 3, kEpochs = 2;

data::Dataset images() {
  return data::load({"synthetic:1x28x28:10:200", "", kSeed});
}

std::vector<at::Tensor> reference_lenet(const data::SampleSource& train, std::uint64_t global_batch,
                                        double lr) {
  const auto model = models::make("lenet", {1, 28, 28, 10, kSeed});
  std::vector<at::Tensor> parameters;
  for (const auto& p : model->parameters()) parameters.push_back(p.tensor);
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(lr).momentum(0.9));
  data::Sampler sampler({train.count(), 1, global_batch}, 0, kSeed);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (std::uint64_t step = 0; step < sampler.steps(0); ++step) {
      const auto batch = training::gather(train, sampler.batch(epoch, step));
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model->forward(batch.input), batch.target).backward();
      optimizer.step();
    }
  }
  std::vector<at::Tensor> out;
  for (const auto& p : parameters) out.push_back(p.detach().clone());
  return out;
}

std::vector<at::Tensor> trained_lenet(std::uint32_t workers, std::uint32_t servers, std::uint64_t batch,
                                      double lr, bool share_memory) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::uint32_t r = 0; r < workers; ++r)
    tasks.push_back(
        std::make_unique<training::Classification>(images(), models::make("lenet", {1, 28, 28, 10, kSeed})));
  testing::train_on_servers(job(workers, servers, "sync", lr), tasks,
                            {batch, kEpochs, kSeed, nullptr, nullptr}, share_memory);
  std::vector<at::Tensor> out;
  for (const auto& p : tasks[0]->parameters()) out.push_back(p.tensor.detach().clone());
  return out;
}

// 200 samples in global batches of 48 leave a last batch of 8, which 3 workers share unevenly.
TEST(SyncTraining, EqualsOneProcessOnTheConcatenatedBatch) {
  torch::set_num_threads(1);
  const auto dataset = images();
  const auto& train = *dataset.train;
  const auto expected = reference_lenet(train, 48, 0.02);
  for (const bool share_memory : {true, false}) {
    const auto seen = trained_lenet(3, share_memory ? 1 : 2, 16, 0.02, share_memory);
    ASSERT_EQ(seen.size(), expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) expect_close(seen[i], expected[i], 1e-4);
  }
}

// Writes to its parameters in every step, without changing them.
class Writing final : public Task {
 public:
  explicit Writing(std::unique_ptr<Task> task) : task_(std::move(task)) {}
  const NamedTensors& parameters() const override { return task_->parameters(); }
  const NamedTensors& buffers() const override { return task_->buffers(); }
  void train(bool on) override { task_->train(on); }
  SplitInfo split(Split split) const override { return task_->split(split); }
  Batch batch(Split split, const BatchRequest& request) override { return task_->batch(split, request); }
  at::Tensor loss(std::size_t phase, const Batch& batch) override {
    {
      const at::NoGradGuard no_grad;
      for (const auto& p : parameters()) p.tensor.mul_(1);
    }
    return task_->loss(phase, batch);
  }
  std::vector<Metric> metrics() const override { return task_->metrics(); }
  std::vector<MetricSum> evaluate(const Batch& batch) override { return task_->evaluate(batch); }
  bool writes_parameters() const override { return true; }

 private:
  const std::unique_ptr<Task> task_;
};

// Under sync, workers map the servers' weights read-only.
TEST(SyncTraining, ATaskThatWritesItsParametersComputesOnACopy) {
  torch::set_num_threads(1);
  const auto trained = [](bool writes) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int r = 0; r < 2; ++r) {
      std::unique_ptr<Task> task =
          std::make_unique<training::Classification>(images(), models::make("lenet", {1, 28, 28, 10, kSeed}));
      if (writes) task = std::make_unique<Writing>(std::move(task));
      tasks.push_back(std::move(task));
    }
    testing::train_on_servers(job(2, 1, "sync", 0.02), tasks, {16, 1, kSeed, nullptr, nullptr});
    return tasks[0]->parameters()[0].tensor.detach().clone();
  };
  EXPECT_TRUE(at::equal(trained(true), trained(false)));
}

}  // namespace
}  // namespace capstan
