// DdpTrainer with real servers, trainers on threads, against a plain loop.

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/cluster/token.h"
#include "capstan/lab/assembly.h"
#include "capstan/lab/average_server.h"
#include "capstan/lab/builtin.h"
#include "capstan/training/allreduce.h"

#include "lab/small_plan.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using Weights = std::vector<at::Tensor>;

Weights copy_of(const Task& task) {
  Weights weights;
  for (const auto& parameter : task.parameters()) weights.push_back(parameter.tensor.detach().clone());
  return weights;
}

// One process: in each step the mean of all trainers' gradients.
Weights reference(const Plan& plan) {
  const auto task = make_task(plan, builtin());
  const auto samples = task->split(Split::kTrain).samples;
  const auto steps = (samples + plan.batch_size - 1) / plan.batch_size / plan.trainers;
  for (std::uint64_t epoch = 0; epoch < plan.epochs; ++epoch) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      Weights gradients;
      for (const auto& p : task->parameters()) gradients.push_back(at::zeros_like(p.tensor));
      for (std::uint32_t rank = 0; rank < plan.trainers; ++rank) {
        std::vector<std::uint32_t> indices;
        const auto first = (step * plan.trainers + rank) * plan.batch_size;
        for (auto i = first; i < std::min(first + plan.batch_size, samples); ++i)
          indices.push_back(static_cast<std::uint32_t>(i));
        const auto batch = task->batch(Split::kTrain, {epoch, indices});
        for (const auto& p : task->parameters()) p.tensor.mutable_grad().reset();
        task->loss(0, batch).backward();
        const at::NoGradGuard no_grad;
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          const auto& g = task->parameters()[i].tensor.grad();
          gradients[i] += (g.is_sparse() ? g.to_dense() : g) / static_cast<double>(plan.trainers);
        }
      }
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < gradients.size(); ++i)
        task->parameters()[i].tensor.sub_(gradients[i] * plan.lr);
    }
  }
  return copy_of(*task);
}

struct Trained {
  Weights weights;
  TrainerResult result;
  std::vector<Series> series;
};

// A plan's processes as threads. Runs twice, as warm-up and measured run.
class Lab {
 public:
  explicit Lab(const Plan& plan) : plan_(plan) {
    for (std::uint32_t i = 0; i < plan.servers; ++i) {
      auto& metrics = *server_metrics_.emplace_back(std::make_unique<MetricsLogger>());
      servers_.push_back(
          std::make_unique<AverageServer>(plan_, i, token_, make_server(plan_, registry_), metrics));
    }
  }

  std::vector<Trained> run() {
    std::shared_ptr<training::AllreduceGroup> opened;
    if (uses_group(plan_)) opened = training::AllreduceGroup::open("127.0.0.1:0", plan_.trainers, [] {});
    // Before any trainer runs: all threads have the same generator of libtorch.
    std::vector<std::unique_ptr<Task>> tasks;
    for (std::uint32_t rank = 0; rank < plan_.trainers; ++rank) tasks.push_back(make_task(plan_, registry_));
    std::vector<Trained> out(plan_.trainers);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < plan_.trainers; ++rank) {
      threads.emplace_back([&, rank] {
        std::shared_ptr<training::AllreduceGroup> group = opened;
        if (opened && rank > 0)
          group = training::AllreduceGroup::join(opened->address(), rank, plan_.trainers);
        if (group) group->rendezvous();
        out[rank] = train(rank, *tasks[rank], group);
      });
    }
    for (auto& thread : threads) thread.join();
    return out;
  }

  void reset() {
    for (auto& server : servers_) server->reset_state();
    for (auto& metrics : server_metrics_) metrics->clear();
  }
  std::vector<Series> server_series(std::size_t server = 0) const {
    return server_metrics_[server]->series();
  }

 private:
  Trained train(std::uint32_t rank, Task& task, std::shared_ptr<training::AllreduceGroup> group) {
    MetricsLogger metrics;
    auto context = trainer_context(plan_, rank, metrics);
    for (const auto& server : servers_) context.servers.push_back(server->address());
    context.token = token_.text();
    context.group = std::move(group);
    const auto trainer = make_trainer(plan_, registry_, context);
    trainer->prepare(task);
    trainer->train(task);
    return {copy_of(task), trainer->result(), metrics.series()};
  }

  const Plan plan_;
  const Registry registry_ = builtin();
  const cluster::Token token_ = cluster::Token::generate();
  std::vector<std::unique_ptr<MetricsLogger>> server_metrics_;
  std::vector<std::unique_ptr<AverageServer>> servers_;
};

void expect_equal(const Weights& ours, const Weights& expected) {
  ASSERT_EQ(ours.size(), expected.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    EXPECT_LT((ours[i] - expected[i]).abs().max().item<float>(), 1e-5f) << "parameter " << i;
}

bool same_bits(const Weights& a, const Weights& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!a[i].equal(b[i])) return false;
  return true;
}

std::map<std::string, std::size_t> counts(const std::vector<Series>& series) {
  std::map<std::string, std::size_t> counts;
  for (const auto& s : series) counts[s.type + "," + s.name] = s.values.size();
  return counts;
}

struct Case {
  const char* hook;
  std::uint32_t trainers, servers;
  const char* server;
  const char* model;
};

class DdpTrainer : public ::testing::TestWithParam<Case> {
 protected:
  Plan plan() const {
    auto plan = testing::small_plan(folder_.path());
    plan.hook = GetParam().hook;
    plan.trainers = GetParam().trainers;
    plan.servers = GetParam().servers;
    plan.server = GetParam().server;
    plan.model = GetParam().model;
    return plan;
  }

  testing::TemporaryFolder folder_;
};

TEST_P(DdpTrainer, EndsWithTheWeightsOfAPlainLoop) {
  const auto plan = this->plan();
  const auto expected = reference(plan);
  Lab lab(plan);
  const auto first = lab.run();
  lab.reset();
  const auto second = lab.run();
  for (const auto& trained : {first, second}) {
    for (const auto& trainer : trained) {
      expect_equal(trainer.weights, expected);
      EXPECT_TRUE(same_bits(trainer.weights, trained[0].weights)) << "replicas must not diverge";
    }
  }
  // 52 samples in batches of 4: 13 batches an epoch.
  const auto steps = 2 * (13 / plan.trainers);
  EXPECT_EQ(second[0].result.steps, steps);
  auto trainer_counts = counts(second[0].series);
  for (const auto* name :
       {"batch_level_metric,batch_all", "forward_metric,forward_pass", "backward_metric,backward",
        "data_metric,data_wait", "communication_metric,gradient_wait", "optimizer_metric,optimizer_step"})
    EXPECT_EQ(trainer_counts[name], steps) << name;
}

TEST_P(DdpTrainer, MeasuresEveryBucket) {
  const auto plan = this->plan();
  const bool sparse = plan.model == "Sparse";
  Lab lab(plan);
  const auto trained = lab.run();
  const auto steps = 2 * (13 / plan.trainers);
  // One dense bucket, and one of the sparse embedding.
  std::map<std::string, std::size_t> expected;
  const auto hook = plan.hook;
  const bool dense_rpc = hook == "rpc_hook", sparse_rpc = dense_rpc || hook == "sparse_rpc_hook";
  expected[dense_rpc ? "hook_future_metric,rpc_dense" : "hook_future_metric,gloo_dense_allreduce"] = steps;
  if (sparse)
    expected[sparse_rpc              ? "hook_future_metric,rpc_sparse"
             : hook == "hybrid_hook" ? "hook_c10d_metric,gloo_sparse_allreduce"
                                     : "hook_future_metric,gloo_sparse_allreduce"] = steps;
  auto found = counts(trained[0].series);
  std::erase_if(found, [](const auto& entry) { return !entry.first.starts_with("hook_"); });
  EXPECT_EQ(found, expected);
  const std::size_t answered = (dense_rpc ? steps : 0) + (sparse && sparse_rpc ? steps : 0);
  for (std::size_t s = 0; s < plan.servers && answered > 0; ++s) {
    const auto at_server = counts(lab.server_series(s));
    for (const auto* name :
         {"parameter_server_straggler_metric,param_index_straggler",
          "parameter_server_batch_metric,param_index_batch", "method_metric,average computation",
          "queue_metric,queue_depth", "bytes_metric,received", "bytes_metric,sent"})
      EXPECT_LE(at_server.at(name), answered) << name;
    if (s == 0) {
      EXPECT_EQ(at_server.at("method_metric,average computation"), answered);
    }
  }
  EXPECT_GT(trained[0].result.bytes_pushed, 0u);
  ASSERT_TRUE(trained[0].result.hidden.has_value());
  EXPECT_GE(*trained[0].result.hidden, 0);
  EXPECT_LE(*trained[0].result.hidden, 1);
}

INSTANTIATE_TEST_SUITE_P(Hooks, DdpTrainer,
                         ::testing::Values(Case{"rpc_hook", 2, 1, "AverageParameterServer", "Sparse"},
                                           Case{"rpc_hook", 3, 2, "AverageParameterServer", "Sparse"},
                                           Case{"rpc_hook", 3, 2, "AverageBatchParameterServer", "Sparse"},
                                           Case{"rpc_hook", 2, 1, "AverageBatchParameterServer", "Dense"},
                                           Case{"rpc_hook", 1, 1, "AverageParameterServer", "Sparse"},
                                           Case{"sparse_rpc_hook", 2, 1, "AverageParameterServer", "Sparse"},
                                           Case{"allreduce_hook", 2, 0, "", "Sparse"},
                                           Case{"allreduce_hook", 3, 0, "", "Dense"},
                                           Case{"hybrid_hook", 2, 0, "", "Sparse"}));

}  // namespace
}  // namespace capstan::lab
