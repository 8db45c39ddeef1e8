// Strategies in the lab: trainers and servers of one process, whose weights must equal those of a plain loop
// that repeats the recorded updates.
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "capstan/base/failure.h"
#include "capstan/lab/assembly.h"
#include "capstan/lab/builtin.h"
#include "capstan/lab/dummy_data.h"
#include "capstan/lab/dummy_model.h"
#include "capstan/lab/plugin_task.h"
#include "capstan/lab/strategy_server.h"
#include "capstan/lab/strategy_trainer.h"
#include "capstan/training/allreduce.h"
#include "capstan/user_error.h"

#include "lab/replay.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using testing::TemporaryFolder;

constexpr std::int64_t kSize = 40, kSamples = 50, kBatch = 4;
constexpr std::uint64_t kTrainers = 2, kEpochs = 2;
constexpr std::uint64_t kSteps = 6;  // per epoch: 13 batches, of which the last is left over
constexpr double kRate = 3;          // so that a gradient on other weights differs

// 1,600 + 2 · 1,640 parameters: two servers have parts.
std::shared_ptr<Model> make_model(bool sparse) {
  torch::manual_seed(3);
  return make_dummy_model({"a test",
                           {{"num_embeddings", kSize},
                            {"embedding_dim", kSize},
                            {"dense_input_size", kSize},
                            {"dense_output_size", kSize},
                            {"dense_layers_count", std::int64_t{2}},
                            {"sparse", sparse}}});
}

std::unique_ptr<Data> make_data() {
  return make_dummy_data({"a test",
                          {{"max_val", kSize},
                           {"sample_count", kSamples},
                           {"sample_length", std::int64_t{5}},
                           {"sparsity_percentage", std::int64_t{20}}}},
                         1);
}

// What two trainers train.
Work make_work() {
  return {.model = make_model(false),
          .data = make_data(),
          .trainers = kTrainers,
          .batch_size = kBatch,
          .steps = kSteps};
}

// ---- a run ----

// Made before the threads of trainers, whose steps seed the same generator.
std::vector<std::unique_ptr<Task>> make_tasks(std::size_t trainers, bool sparse) {
  std::vector<std::unique_ptr<Task>> tasks;
  while (tasks.size() < trainers)
    tasks.push_back(
        std::make_unique<PluginTask>(make_data(), make_model(sparse), builtin().criteria.at("cel")));
  return tasks;
}

struct Trained {
  Tensors weights;
  TrainerResult result;
  std::vector<Series> series;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> progress;  // steps done, and all
};

struct Ran {
  std::vector<Trained> trainers;
  std::vector<std::vector<Series>> servers;
  nlohmann::json updates;
};

Trained train(const std::string& strategy, TrainerContext context, Task& task) {
  Trained trained;
  context.on_step = [&](std::uint64_t done, std::uint64_t total) {
    trained.progress.emplace_back(done, total);
  };
  const auto trainer = make_strategy_trainer(strategy, context);
  trainer->prepare(task);
  trainer->train(task);
  for (const auto& parameter : task.parameters()) trained.weights.push_back(parameter.tensor);
  trained.weights = copies(trained.weights);
  trained.result = std::as_const(*trainer).result();
  trained.series = context.metrics->series();
  return trained;
}

Plan make_plan(const std::string& strategy) {
  Plan plan;
  plan.trainers = kTrainers;
  plan.trainer = plan.server = strategy;
  plan.epochs = kEpochs;
  plan.batch_size = kBatch;
  plan.lr = kRate;
  plan.rpc_timeout = 60;
  return plan;
}

Ran run_on_servers(Plan plan, bool sparse, std::uint32_t number = 0) {
  const TemporaryFolder folder;
  plan.save = folder.path();
  const auto token = cluster::Token::generate();
  std::vector<std::unique_ptr<MetricsLogger>> logs;
  std::vector<std::unique_ptr<StrategyServer>> servers;
  std::vector<std::string> addresses;
  for (std::uint32_t i = 0; i < plan.servers; ++i) {
    logs.push_back(std::make_unique<MetricsLogger>());
    servers.push_back(std::make_unique<StrategyServer>(plan, i, number, addresses, token, *logs.back()));
    addresses.push_back(servers.back()->address());
  }
  Ran ran;
  ran.trainers.resize(plan.trainers);
  const auto tasks = make_tasks(plan.trainers, sparse);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < plan.trainers; ++rank) {
    threads.emplace_back([&, rank] {
      MetricsLogger metrics;
      auto context = trainer_context(plan, rank, metrics);
      context.servers = addresses;
      context.token = token.text();
      ran.trainers[rank] = train(plan.trainer, context, *tasks[rank]);
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < plan.servers; ++i) {
    servers[i]->finish();
    ran.servers.push_back(logs[i]->series());
  }
  std::ifstream file(folder.path() / fmt::format("run-{}", number) / "updates.json");
  ran.updates = nlohmann::json::parse(file);
  return ran;
}

std::size_t count(const std::vector<Series>& all, const std::string& type, const std::string& name,
                  const std::string& unit = "ms") {
  for (const auto& series : all)
    if (series.type == type && series.name == name) {
      EXPECT_EQ(series.unit, unit) << name;
      return series.values.size();
    }
  return 0;
}

double sum(const std::vector<Series>& all, const std::string& type, const std::string& name) {
  double total = 0;
  for (const auto& series : all)
    if (series.type == type && series.name == name)
      for (const auto value : series.values) total += value;
  return total;
}

// ---- expectations ----

void expect_near(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-5) << "parameter " << i;
}

void expect_trainer_metrics(const Ran& ran, std::size_t pushes, bool is_local) {
  for (const auto& trainer : ran.trainers) {
    constexpr auto kAll = kEpochs * kSteps;
    EXPECT_EQ(trainer.result.steps, kAll);
    EXPECT_EQ(trainer.result.samples, kAll * kBatch);
    ASSERT_EQ(trainer.progress.size(), kAll);
    EXPECT_EQ(trainer.progress.back(), std::pair(kAll, kAll));
    EXPECT_GT(trainer.result.loss, 0);
    EXPECT_EQ(count(trainer.series, "batch_level_metric", "batch_all"), kAll);
    EXPECT_EQ(count(trainer.series, "forward_metric", "forward_pass"), kAll);
    EXPECT_EQ(count(trainer.series, "backward_metric", "backward"), kAll);
    EXPECT_EQ(count(trainer.series, "data_metric", "data_wait"), kAll);
    EXPECT_EQ(count(trainer.series, "communication_metric", "gradient_wait"), pushes);
    EXPECT_EQ(count(trainer.series, "hook_future_metric", "push_pull"), pushes);
    EXPECT_EQ(count(trainer.series, "optimizer_metric", "optimizer_step"), is_local ? kAll : 0u);
  }
}

void expect_server_metrics(const std::vector<Series>& server, std::size_t updates) {
  EXPECT_EQ(count(server, "parameter_server_straggler_metric", "param_index_straggler"), updates);
  EXPECT_EQ(count(server, "parameter_server_batch_metric", "param_index_batch"), updates);
  EXPECT_EQ(count(server, "method_metric", "average computation"), updates);
  EXPECT_EQ(count(server, "queue_metric", "queue_depth", "ops"), updates);
  EXPECT_EQ(count(server, "bytes_metric", "received", "bytes"), updates);
  EXPECT_GT(count(server, "bytes_metric", "sent", "bytes"), 0u);
}

// ---- strategies that push gradients ----

struct Case {
  const char* strategy;
  std::uint64_t updates;  // of each group; 0: it depends on the order of arrival
  GradientReplay::Rule rule;
  bool takes_rows = true;
};

const Case kGradientCases[] = {
    {"sync", 12, step_with_mean(kRate)},
    {"batch:2", 12, step_with_mean(kRate)},
    {"batch:1", 24, step_with_mean(kRate)},
    {"async", 24, step_with_mean(kRate)},
    {"async:damped", 24,
     [](const auto& update, const auto& gradients, const auto&, const auto&) {
       return -kRate / (1 + staleness(update, update.pushes[0])) * gradients[0];
     }},
    {"ssp:1", 24, step_with_mean(kRate)},
    {"backup:1", 0, step_with_mean(kRate)},
    {"dc-asgd:50", 24, delay_compensation(kRate, 50), false},
};

TEST(Strategies, ThatPushGradientsEqualAPlainLoop) {
  for (const auto& [strategy, updates, rule, takes_rows] : kGradientCases) {
    for (const bool sparse : {false, true}) {
      if (sparse && !takes_rows) continue;
      SCOPED_TRACE(fmt::format("{}, sparse: {}", strategy, sparse));
      const auto ran = run_on_servers(make_plan(strategy), sparse);
      const auto recorded = updates_of(ran.updates);
      ASSERT_FALSE(recorded.empty());
      const auto last = recorded.back().pushes.back().worker;
      Plain plain(make_work());
      expect_near(ran.trainers[last].weights, GradientReplay(plain, sparse, rule).run(recorded));
      expect_trainer_metrics(ran, kEpochs * kSteps, false);
      EXPECT_TRUE(updates == 0 || recorded.size() == updates * (sparse ? 2 : 1)) << recorded.size();
      expect_server_metrics(ran.servers[0], recorded.size());
    }
  }
}

TEST(Strategies, WithAdaptiveDelayCompensationEqualAPlainLoop) {
  const auto ran = run_on_servers(make_plan("dc-asgd-a:1"), false);
  const auto recorded = updates_of(ran.updates);
  Plain plain(make_work());
  expect_near(ran.trainers[recorded.back().pushes.back().worker].weights,
              GradientReplay(plain, false, adaptive_delay_compensation(kRate, 1)).run(recorded));
}

TEST(Strategies, OnTwoServersEqualAPlainLoop) {
  for (const auto* strategy : {"sync", "async"}) {
    for (const bool sparse : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, sparse: {}", strategy, sparse));
      auto plan = make_plan(strategy);
      plan.servers = 2;
      const auto ran = run_on_servers(plan, sparse);
      const auto recorded = updates_of(ran.updates);
      const auto last = recorded.back().pushes.back().worker;
      Plain plain(make_work());
      expect_near(ran.trainers[last].weights,
                  GradientReplay(plain, sparse, step_with_mean(kRate)).run(recorded));
      for (const auto& server : ran.servers) expect_server_metrics(server, recorded.size());
    }
  }
}

// ---- strategies that use local steps ----

struct LocalCase {
  const char* strategy;
  std::size_t pushes;  // of each trainer
  LocalReplay::Rule rule;
};

const LocalCase kLocalCases[] = {
    {"local-sgd:5", 3, mean_of_weights()},
    {"fedavg:1", 2, mean_of_weights()},
    {"diloco:4", 3, outer_step(0.7, 0.9, equal_share)},
    {"decoupled-diloco:3:1:0.001s", 4, outer_step(0.7, 0.9, share_of_samples)},
    {"fedbuff:2:3:0.5", 4, outer_step(0.5, 0, damped_share)},
};

TEST(Strategies, ThatUseLocalStepsEqualAPlainLoop) {
  for (const auto& [strategy, pushes, rule] : kLocalCases) {
    for (const bool sparse : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, sparse: {}", strategy, sparse));
      const auto ran = run_on_servers(make_plan(strategy), sparse);
      const auto recorded = updates_of(ran.updates);
      ASSERT_FALSE(recorded.empty());
      Plain plain(make_work());
      expect_near(ran.trainers[recorded.back().pushes.back().worker].weights,
                  LocalReplay(plain, kRate, rule).run(recorded));
      expect_trainer_metrics(ran, pushes, true);
      expect_server_metrics(ran.servers[0], recorded.size());
    }
  }
}

// Workers keep weights of their own.
TEST(Strategies, WithElasticAveragingEqualAPlainLoop) {
  const auto ran = run_on_servers(make_plan("easgd:0.3:4"), false);
  const auto recorded = updates_of(ran.updates);
  ASSERT_EQ(recorded.size(), 2 * 3u);
  Plain plain(make_work());
  const auto x = elastic_weights(plain, kRate, 0.3, recorded);
  for (const auto worker : {0, 1}) expect_near(ran.trainers[worker].weights, x[worker]);
  expect_trainer_metrics(ran, 3, true);
}

// ---- runs ----

// With momentum, state of an earlier run would change the second one.
TEST(StrategyServer, OfTheNextRunBeginsAnew) {
  auto plan = make_plan("sync");
  plan.optimizer = "sgd:momentum=0.9";
  for (const std::uint32_t run : {0u, 1u}) {
    Tensors m;
    const auto rule = [&](const auto& update, const auto& gradients, const auto&, const auto&) {
      m = m.empty() ? mean(update, gradients) : 0.9 * m + mean(update, gradients);
      return -kRate * m;
    };
    const auto ran = run_on_servers(plan, false, run);
    const auto recorded = updates_of(ran.updates);
    ASSERT_EQ(recorded.size(), kEpochs * kSteps);
    EXPECT_EQ(recorded.front().version, 1u);
    Plain plain(make_work());
    const auto expected = GradientReplay(plain, false, rule).run(recorded);
    for (const auto& trainer : ran.trainers) expect_near(trainer.weights, expected);
  }
}

TEST(StrategyServer, CountsTheBytesOfPushesAndAnswers) {
  const auto ran = run_on_servers(make_plan("sync"), false);
  constexpr double kModel = 4 * (kSize * kSize + 2 * (kSize * kSize + kSize));
  constexpr auto kPushes = kEpochs * kSteps;
  for (const auto& trainer : ran.trainers) {
    EXPECT_EQ(trainer.result.bytes_pushed, kPushes * kModel);
    EXPECT_EQ(trainer.result.bytes_pulled, kPushes * kModel) << "without the initial weights";
    EXPECT_EQ(sum(trainer.series, "bytes_metric", "pushed"), kPushes * kModel);
    EXPECT_EQ(sum(trainer.series, "bytes_metric", "pulled"), kPushes * kModel);
  }
  // With the gaps between tensors, which begin at multiples of 64 bytes.
  EXPECT_NEAR(sum(ran.servers[0], "bytes_metric", "received"), kTrainers * kPushes * kModel,
              100 * kTrainers * kPushes);
  EXPECT_NEAR(sum(ran.servers[0], "bytes_metric", "sent"), kTrainers * kPushes * kModel,
              100 * kTrainers * kPushes);
}

TEST(StrategyServer, EndsWithoutTrainers) {
  MetricsLogger metrics;
  const StrategyServer server(make_plan("sync"), 0, 0, {}, cluster::Token::generate(), metrics);
  EXPECT_FALSE(server.address().empty());
}

TEST(StrategyServer, RefusesAWrongPlan) {
  MetricsLogger metrics;
  EXPECT_THROW(StrategyServer(make_plan("batch:3"), 0, 0, {}, cluster::Token::generate(), metrics),
               UserError);
  auto plan = make_plan("sync");
  plan.optimizer = "sdg";
  EXPECT_THROW(StrategyServer(plan, 0, 0, {}, cluster::Token::generate(), metrics), UserError);
}

TEST(StrategyServer, FailsIfATrainerIsLost) {
  auto plan = make_plan("sync");
  plan.trainers = 1;
  const auto token = cluster::Token::generate();
  MetricsLogger metrics;
  StrategyServer server(plan, 0, 0, {}, token, metrics);
  {
    auto context = trainer_context(plan, 0, metrics);
    context.servers = {server.address()};
    context.token = token.text();
    const auto tasks = make_tasks(1, false);
    const auto trainer = make_strategy_trainer("sync", context);
    trainer->prepare(*tasks[0]);
  }
  try {
    server.finish();
    FAIL() << "no failure";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kLost);
  }
}

// ---- without servers ----

TEST(Strategies, ByAllreduceEqualAPlainLoop) {
  for (const bool sparse : {false, true}) {
    SCOPED_TRACE(sparse);
    const std::shared_ptr<training::AllreduceGroup> first =
        training::AllreduceGroup::open("127.0.0.1:0", kTrainers, [] {});
    Ran ran;
    ran.trainers.resize(kTrainers);
    const auto tasks = make_tasks(kTrainers, sparse);
    const auto part = [&](std::shared_ptr<training::AllreduceGroup> group, std::uint32_t rank) {
      group->rendezvous();
      MetricsLogger metrics;
      auto context = trainer_context(make_plan("allreduce"), rank, metrics);
      context.group = std::move(group);
      ran.trainers[rank] = train("allreduce", context, *tasks[rank]);
    };
    std::thread other([&] { part(training::AllreduceGroup::join(first->address(), 1, kTrainers), 1); });
    part(first, 0);
    other.join();
    const auto expected = Plain(make_work()).trained_together(kEpochs, kRate);
    for (const auto& trainer : ran.trainers) expect_near(trainer.weights, expected);
    expect_trainer_metrics(ran, kEpochs * kSteps, true);
    EXPECT_GT(ran.trainers[0].result.bytes_pushed, 0u);
  }
}

// The last batch of an epoch has two samples.
TEST(Strategies, OfASingleProcessEqualAPlainLoop) {
  constexpr std::int64_t kLarge = 8, kLargeSteps = 7;
  MetricsLogger metrics;
  auto context = trainer_context(make_plan("single"), 0, metrics);
  context.trainers = 1;
  context.batch_size = kLarge;
  const auto tasks = make_tasks(1, true);
  const auto trained = train("single", context, *tasks[0]);
  EXPECT_EQ(trained.result.steps, kEpochs * kLargeSteps);
  EXPECT_EQ(trained.result.samples, kEpochs * kSamples);
  EXPECT_EQ(count(trained.series, "optimizer_metric", "optimizer_step"), kEpochs * kLargeSteps);
  EXPECT_EQ(count(trained.series, "communication_metric", "gradient_wait"), 0u);

  auto work = make_work();
  work.trainers = 1;
  work.batch_size = kLarge;
  work.steps = kLargeSteps;
  expect_near(trained.weights, Plain(work).trained_together(kEpochs, kRate));
}

TEST(Strategies, WithWrongContextsAreRefused) {
  MetricsLogger metrics;
  auto context = trainer_context(make_plan("sync"), 0, metrics);
  const auto problem = [&](const char* strategy) -> std::string {
    try {
      (void)make_strategy_trainer(strategy, context);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("sync"), "trainer sync: it needs a server; --nserver must be at least 1");
  EXPECT_EQ(problem("single"), "trainer single: it is one process, but --ntrainer is 2");
  EXPECT_EQ(problem("allreduce"), "trainer allreduce: it needs a group of the trainers");
  EXPECT_THAT(problem("snyc"), ::testing::HasSubstr("did you mean sync?"));
  context.servers = {"127.0.0.1:1"};
  EXPECT_EQ(problem("allreduce"), "trainer allreduce: it uses no servers; --nserver must be 0");
}

}  // namespace
}  // namespace capstan::lab
