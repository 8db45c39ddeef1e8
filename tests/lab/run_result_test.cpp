#include "capstan/lab/run_result.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProcessReport trainer(std::int64_t begin, std::int64_t end, std::vector<double> forward) {
  ProcessReport r;
  r.begin_ns = begin;
  r.end_ns = end;
  r.steps = 2;
  r.samples = 20;
  r.loss = 0.5;
  r.bytes_pushed = 100;
  r.bytes_pulled = 10;
  r.series = {{"forward_metric", "forward_pass", "ms", std::move(forward)}};
  return r;
}

RunReports two_trainers() {
  return {{trainer(1'000'000'000, 3'000'000'000, {1, 3}), trainer(1'500'000'000, 3'500'000'000, {5, 7})}, {}};
}

const report::LabMetric* find(const report::LabRun& run, const std::string& rank, const std::string& name) {
  const auto found =
      std::ranges::find_if(run.metrics, [&](const auto& m) { return m.rank == rank && m.name == name; });
  return found == run.metrics.end() ? nullptr : &*found;
}

TEST(RunResult, LastsFromTheFirstBeginToTheLastEnd) {
  const auto run = run_result(two_trainers());
  EXPECT_DOUBLE_EQ(run.seconds, 2.5);
  EXPECT_EQ(run.steps, 4u);
  EXPECT_EQ(run.samples, 40u);
  EXPECT_DOUBLE_EQ(run.samples_per_second, 16);
  EXPECT_EQ(run.bytes.pushed, 200u);
  EXPECT_EQ(run.bytes.pulled, 20u);
}

TEST(RunResult, MetricsAreThoseOfEachRankAndOfAllTogether) {
  auto reports = two_trainers();
  ProcessReport server;
  server.series = {{"method_metric", "average computation", "ms", {4, 6}},
                   {"queue_metric", "queue_depth", "ops", {2}}};
  reports.servers = {server};
  const auto run = run_result(reports);
  std::vector<std::string> ranks;
  for (const auto& m : run.metrics) ranks.push_back(m.rank + ": " + m.name);
  EXPECT_THAT(
      ranks,
      ElementsAre("trainer 0: forward_metric,forward_pass", "trainer 1: forward_metric,forward_pass",
                  "all trainers: forward_metric,forward_pass", "server 2: method_metric,average computation",
                  "server 2: queue_metric,queue_depth", "all servers: method_metric,average computation",
                  "all servers: queue_metric,queue_depth"));
  const auto& all = *find(run, "all trainers", "forward_metric,forward_pass");
  EXPECT_EQ(all.unit, "ms");
  EXPECT_EQ(all.statistics.count, 4u);
  EXPECT_DOUBLE_EQ(all.statistics.mean, 4);
  EXPECT_DOUBLE_EQ(all.statistics.variance.value(), 20.0 / 3);  // of 1, 3, 5, 7
  EXPECT_DOUBLE_EQ(all.statistics.p50, 4);
  EXPECT_DOUBLE_EQ(find(run, "trainer 1", "forward_metric,forward_pass")->statistics.min, 5);
  EXPECT_EQ(find(run, "server 2", "queue_metric,queue_depth")->unit, "ops");
}

TEST(RunResult, AStepIsDividedIntoItsParts) {
  auto reports = two_trainers();
  reports.trainers[0].series.push_back({"backward_metric", "backward", "ms", {10, 20}});
  reports.trainers[1].series.push_back({"backward_metric", "backward", "ms", {30, 40}});
  reports.trainers[0].series.push_back({"communication_metric", "gradient_wait", "ms", {2, 4}});
  reports.trainers[1].series.push_back({"communication_metric", "gradient_wait", "ms", {6, 8}});
  reports.trainers[0].series.push_back({"data_metric", "data_wait", "ms", {1, 2}});
  const auto step = run_result(reports).step;
  EXPECT_DOUBLE_EQ(step.data, 0.75);  // of four steps
  EXPECT_DOUBLE_EQ(step.forward, 4);
  EXPECT_DOUBLE_EQ(step.communication, 5);
  EXPECT_DOUBLE_EQ(step.backward, 20);  // 25 with the wait
  EXPECT_DOUBLE_EQ(step.optimizer, 0);
}

// With local steps, two of the four steps communicate and make the optimizer's step.
TEST(RunResult, APartThatFewStepsHaveIsDividedAmongAll) {
  auto reports = two_trainers();
  for (auto& trainer : reports.trainers)
    trainer.series = {{"backward_metric", "backward", "ms", {10, 30}},
                      {"communication_metric", "gradient_wait", "ms", {20}},
                      {"optimizer_metric", "optimizer_step", "ms", {6}}};
  const auto step = run_result(reports).step;
  EXPECT_DOUBLE_EQ(step.communication, 10);
  EXPECT_DOUBLE_EQ(step.backward, 10);
  EXPECT_DOUBLE_EQ(step.optimizer, 3);
}

// As with hybrid_hook.
TEST(RunResult, AWaitInTheBackwardPassIsCommunication) {
  auto reports = two_trainers();
  for (auto& trainer : reports.trainers)
    trainer.series = {{"backward_metric", "backward", "ms", {10, 30}},
                      {"communication_metric", "gradient_wait", "ms", {2, 4}},
                      {"hook_c10d_metric", "gloo_sparse_allreduce", "ms", {6, 8}}};
  const auto step = run_result(reports).step;
  EXPECT_DOUBLE_EQ(step.communication, 10);
  EXPECT_DOUBLE_EQ(step.backward, 10);
}

TEST(RunResult, StragglersAreThoseOfAllServers) {
  auto reports = two_trainers();
  ProcessReport first, second;
  first.series = {{"parameter_server_straggler_metric", "param_index_straggler", "ms", {1, 2}},
                  {"method_metric", "average computation", "ms", {9}}};
  second.series = {{"parameter_server_straggler_metric", "param_index_straggler", "ms", {3}}};
  reports.servers = {first, second};
  EXPECT_THAT(run_result(reports).straggler_ms, ElementsAre(1, 2, 3));
  EXPECT_THAT(run_result(two_trainers()).straggler_ms, IsEmpty());
}

TEST(RunResult, HiddenCommunicationIsTheMeanOfTrainersThatHaveIt) {
  auto reports = two_trainers();
  EXPECT_FALSE(run_result(reports).hidden_communication);
  reports.trainers[1].hidden = 0.4;
  EXPECT_DOUBLE_EQ(run_result(reports).hidden_communication.value(), 0.4);
  reports.trainers[0].hidden = 0.2;
  EXPECT_DOUBLE_EQ(run_result(reports).hidden_communication.value(), 0.3);
}

TEST(RunResult, ALossThatIsNotFiniteIsNone) {
  auto reports = two_trainers();
  reports.trainers[1].loss = 1.5;
  EXPECT_DOUBLE_EQ(run_result(reports).loss.value(), 1);
  reports.trainers[1].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(run_result(reports).loss);
}

TEST(RunResult, AnEmptySeriesHasNoMetric) {
  auto reports = two_trainers();
  reports.trainers[0].series = {{"a", "b", "ms", {}}};
  EXPECT_FALSE(find(run_result(reports), "trainer 0", "a,b"));
}

}  // namespace
}  // namespace capstan::lab
