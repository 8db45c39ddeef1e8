#pragma once

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/experiment_run.h"
#include "lab/replay.h"

// How often each metric of a run must have been measured.
namespace capstan::lab {

using Counts = std::map<std::string, std::uint64_t>;

inline Counts operator*(std::uint64_t factor, Counts counts) {
  for (auto& [name, count] : counts) count *= factor;
  return counts;
}
inline Counts operator+(Counts a, const Counts& b) {
  for (const auto& [name, count] : b) a[name] += count;
  return a;
}

inline const Counts kEveryStep = {{"batch_level_metric,batch_all", 1},
                                  {"forward_metric,forward_pass", 1},
                                  {"backward_metric,backward", 1},
                                  {"data_metric,data_wait", 1}};
inline const Counts kOptimizerStep = {{"optimizer_metric,optimizer_step", 1}};
inline const Counts kGradientWait = {{"communication_metric,gradient_wait", 1}};
inline const Counts kPush =
    kGradientWait +
    Counts{{"hook_future_metric,push_pull", 1}, {"bytes_metric,pushed", 1}, {"bytes_metric,pulled", 1}};
// Of a server, for each bucket or update.
inline const Counts kServed = {{"parameter_server_straggler_metric,param_index_straggler", 1},
                               {"parameter_server_batch_metric,param_index_batch", 1},
                               {"method_metric,average computation", 1},
                               {"queue_metric,queue_depth", 1},
                               {"bytes_metric,received", 1}};
inline const Counts kSent = {{"bytes_metric,sent", 1}};

inline void expect_statistics(const nlohmann::json& metric) {
  const auto value = [&](const char* key) { return metric.at(key).get<double>(); };
  const auto name = metric.at("name").get<std::string>();
  EXPECT_EQ(metric.at("unit"), name.starts_with("bytes_metric")   ? "bytes"
                               : name.starts_with("queue_metric") ? "ops"
                                                                  : "ms")
      << name;
  EXPECT_GE(value("min"), 0) << name;
  const auto* before = "min";
  for (const auto* key : {"p50", "p95", "p99", "max"}) {
    EXPECT_LE(value(before), value(key)) << name;
    before = key;
  }
  EXPECT_LE(value("min"), value("mean") * (1 + 1e-9)) << name;
  EXPECT_GE(value("max"), value("mean") * (1 - 1e-9)) << name;
  if (metric.at("count") == 1) {
    EXPECT_TRUE(metric.at("variance").is_null() && metric.at("stdev").is_null()) << name;
  } else {
    EXPECT_NEAR(value("stdev") * value("stdev"), value("variance"), 1e-6 * value("variance")) << name;
  }
}

// The counts of each rank's metrics.
inline std::map<std::string, Counts> counts_of(const nlohmann::json& run) {
  std::map<std::string, Counts> counts;
  for (const auto& metric : run.at("metrics")) {
    expect_statistics(metric);
    EXPECT_TRUE(counts[metric.at("rank")].emplace(metric.at("name"), metric.at("count")).second) << metric;
  }
  return counts;
}

// The bytes of a run are those of its steps.
inline void expect_bytes(const nlohmann::json& run) {
  for (const auto& metric : run.at("metrics")) {
    const auto name = metric.at("name").get<std::string>();
    if (metric.at("rank") != "all trainers" || !name.starts_with("bytes_metric,")) continue;
    const auto sum = metric.at("mean").get<double>() * metric.at("count").get<double>();
    EXPECT_NEAR(sum, run.at("bytes").at(name.substr(name.find(',') + 1)).get<double>(), 1e-6 * sum) << name;
  }
}

// Exactly these metrics: of each trainer, and of the only server, if there is one.
inline void expect_metrics(const Measured& measured, const Work& work, const Counts& trainer,
                           const Counts& server) {
  const auto& run = measured.run;
  std::map<std::string, Counts> expected;
  for (std::uint64_t rank = 0; rank < work.trainers; ++rank)
    expected[fmt::format("trainer {}", rank)] = trainer;
  expected["all trainers"] = work.trainers * trainer;
  if (!server.empty()) expected[fmt::format("server {}", work.trainers)] = expected["all servers"] = server;
  EXPECT_EQ(counts_of(run), expected);
  const auto stragglers = server.find("parameter_server_straggler_metric,param_index_straggler");
  EXPECT_EQ(run.at("straggler_ms").size(), stragglers == server.end() ? 0 : stragglers->second);
  EXPECT_EQ(run.at("steps"), work.trainers * work.steps);
  EXPECT_EQ(run.at("samples"), work.trainers * work.steps * work.batch_size);
  EXPECT_GT(run.at("loss"), 0);
  expect_bytes(run);
}

// Of updates: not every one is followed by an answer.
inline void expect_update_metrics(const Measured& measured, const Work& work, const Counts& trainer,
                                  std::uint64_t updates) {
  const auto counts = counts_of(measured.run);
  const auto server = counts.find("all servers");
  ASSERT_NE(server, counts.end());
  const auto sent = server->second.find("bytes_metric,sent");
  ASSERT_NE(sent, server->second.end());
  EXPECT_LE(sent->second, updates);
  expect_metrics(measured, work, trainer, updates * kServed + sent->second * kSent);
}

}  // namespace capstan::lab
