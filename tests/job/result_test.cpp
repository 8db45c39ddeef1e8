#include "capstan/job/result.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/evaluations.h"

namespace capstan::job {
namespace {

wire::WorkerRow row(wire::WorkerState state, std::uint64_t samples, double compute, double wait,
                    double data) {
  wire::WorkerRow r;
  r.state = state;
  r.samples = samples;
  r.compute_seconds = compute;
  r.wait_seconds = wait;
  r.data_seconds = data;
  r.pushes = 10;
  r.staleness_mean = 0.25;
  r.staleness_max = 2;
  return r;
}

TrainResult example() {
  wire::StatusReport status;
  status.version = {20};
  status.seconds = 4;
  status.samples = 1000;
  status.bytes_pushed = 3'400'000;
  status.bytes_pulled = 3'500'000;
  status.workers = {row(wire::WorkerState::kLeft, 600, 3, 0.5, 0.5),
                    row(wire::WorkerState::kLost, 400, 1, 0.5, 0.5)};
  TrainResult result;
  result.config.network = "lenet";
  result.config.dataset = "digits";
  result.transport = "local";
  result.take(status, 500);
  result.train_loss = 0.5;
  result.test = testing::classified(0.25, 0.875, 1, 100);
  result.run_dir = "runs/a";
  return result;
}

TEST(Result, TakesTheServersCounts) {
  const auto result = example();
  EXPECT_EQ(result.reached.steps, 20u);
  EXPECT_EQ(result.reached.epochs, 2) << "1,000 of 500 samples";
  EXPECT_EQ(result.reached.samples_per_second, 250);
  EXPECT_EQ(result.times.compute, 2) << "of 3 and 1";
  EXPECT_EQ(result.times.communication, 0.5);
  EXPECT_EQ(result.lost_workers, 1u);
}

TEST(Result, IsOneJsonObjectWithItsKeysInOrder) {
  EXPECT_EQ(
      example().json(),
      R"({"ok":true,"network":"lenet","dataset":"digits","strategy":"sync","workers":2,"servers":1,)"
      R"("transport":"local","optimizer":"sgd","steps":20,"epochs":2.0,"seconds":4.0,"samples_per_second":250.0,)"
      R"("train_loss":0.5,"test_accuracy":0.875,"test_loss":0.25,"test_top5":1.0,)"
      R"("metrics":[{"name":"accuracy","better":"higher","percent":true},{"name":"loss","better":"lower",)"
      R"("percent":false},{"name":"top5","better":"higher","percent":true}],"bytes_pushed":3400000,)"
      R"("bytes_pulled":3500000,"compute_seconds":2.0,"communication_seconds":0.5,"data_seconds":0.5,)"
      R"("lost_workers":1,"dropped_pushes":0,"staleness_mean":0.0,"staleness_max":0,"resumed_from":0,)"
      R"("checkpoint":0,"run_dir":"runs/a","per_worker":[{"pushes":10,"samples":600,"compute_seconds":3.0,)"
      R"("wait_seconds":0.5,"staleness_mean":0.25,"staleness_max":2},{"pushes":10,"samples":400,)"
      R"("compute_seconds":1.0,"wait_seconds":0.5,"staleness_mean":0.25,"staleness_max":2}]})");
}

TEST(Result, OfAnInterruptedRunIsNotOk) {
  auto result = example();
  result.interrupted = true;
  const auto json = nlohmann::json::parse(result.json());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["error"], "interrupted");
}

TEST(Result, OfOneProcessHasOneWorkerAndNoServer) {
  auto result = example();
  result.config.strategy = "single";
  const auto json = nlohmann::json::parse(result.json());
  EXPECT_EQ(json["workers"], 1);
  EXPECT_EQ(json["servers"], 0);
  EXPECT_EQ(result.summary(),
            "lenet on digits: test accuracy 87.50 %, test loss 0.2500, train loss 0.5000\n"
            "20 updates (2.0 epochs) in 4.0 s: 250 samples/s\n"
            "runs/a/weights.safetensors\n");
}

TEST(Result, SummaryShowsTheWorkersTime) {
  EXPECT_EQ(example().summary(),
            "lenet on digits: test accuracy 87.50 %, test loss 0.2500, train loss 0.5000\n"
            "20 updates (2.0 epochs) in 4.0 s: 250 samples/s\n"
            "sync, 2 workers, 1 server over local: workers computed 67 % of the time\n"
            "mean wait per worker: 0.5 s for other workers and servers, 0.5 s for data\n"
            "3.4 MB pushed, 3.5 MB pulled (shared memory is counted as if sent)\n"
            "1 of 2 workers were lost\n"
            "runs/a/weights.safetensors\n");
}

TEST(Result, SummaryOfACancelledEvaluationHasNoNumbers) {
  auto result = example();
  result.test = metrics::Evaluation::unknown(testing::classification_metrics());
  EXPECT_EQ(result.summary().substr(0, result.summary().find('\n')),
            "lenet on digits: not evaluated, train loss 0.5000");
}

TEST(Result, WithoutAStepHasNoTrainingLoss) {
  auto result = example();
  result.train_loss.reset();
  wire::StatusReport status;
  status.version = {20};
  result.take(status, 500);
  EXPECT_TRUE(nlohmann::json::parse(result.json())["train_loss"].is_null());
  EXPECT_EQ(result.summary(),
            "lenet on digits: test accuracy 87.50 %, test loss 0.2500\n"
            "20 updates (0.0 epochs): nothing was left to train\n"
            "runs/a/weights.safetensors\n");
  result.interrupted = true;
  EXPECT_EQ(result.summary().find("nothing was left"), std::string::npos);
}

TEST(Result, SummaryOfAllreduceNamesNoServer) {
  auto result = example();
  result.config.strategy = "allreduce";
  result.transport = "gloo";
  result.lost_workers = 0;
  EXPECT_EQ(result.summary(),
            "lenet on digits: test accuracy 87.50 %, test loss 0.2500, train loss 0.5000\n"
            "20 updates (2.0 epochs) in 4.0 s: 250 samples/s\n"
            "allreduce, 2 workers without a server over gloo: workers computed 67 % of the time\n"
            "mean wait per worker: 0.5 s for other workers, 0.5 s for data\n"
            "3.4 MB sent from worker to worker\n"
            "runs/a/weights.safetensors\n");
}

TEST(Result, SummaryListsTheStalenessOfFewWorkersOnly) {
  auto result = example();
  result.config.strategy = "async";
  result.transport = "auto";
  result.pushes = {3, 0.25, 2};
  const auto staleness = [](const TrainResult& r) {
    const auto text = r.summary();
    const auto begin = text.find("staleness");
    return text.substr(begin, text.find("pushes dropped") - begin);
  };
  EXPECT_NE(result.summary().find("async, 2 workers, 1 server: workers"), std::string::npos);
  EXPECT_EQ(staleness(result),
            "staleness 0.25 on average, 2 at most\n  worker 0: 0.25, 2   worker 1: 0.25, 2\n3 ");
  result.rows.resize(13);
  EXPECT_EQ(staleness(result), "staleness 0.25 on average, 2 at most\n3 ");
}

TEST(Result, AddsTrainingBeforeTheCheckpoint) {
  auto result = example();
  checkpoint::Manifest from;
  from.version = {15};
  from.trained_samples = 750;
  result.resumed(from, 500);
  EXPECT_EQ(result.resumed_from, 15u);
  EXPECT_EQ(result.reached.epochs, 3.5);
  EXPECT_NE(result.summary().find("20 updates (3.5 epochs), 5 since the resume, in 4.0 s"),
            std::string::npos);
}

}  // namespace
}  // namespace capstan::job
