#pragma once

#include <cmath>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/loopback_cluster.h"

// A small model, workers that push known gradients, and plain arithmetic for the expected result.
namespace capstan::testing::play {

inline FlatLayout small_layout() {
  return FlatLayout({{"a", {300, 7}}, {"b", {5}}, {"c", {64, 64}}});
}

inline std::vector<float> initial_weights(const FlatLayout& layout) {
  std::vector<float> w(layout.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.01f * static_cast<float>(i % 97);
  return w;
}

// A worker's gradient at a step: a function that differs for each rank, step and element.
inline float gradient(std::uint32_t rank, std::uint64_t step, std::size_t i) {
  return 0.001f * static_cast<float>((rank + 1) * (i % 13 + 1)) - 0.0005f * static_cast<float>(step % 5);
}

// Its report: different samples and a different loss in each step.
inline client::StepReport step_report(std::uint32_t rank, std::uint64_t step) {
  return {.samples = 8 + 4 * rank + static_cast<std::uint32_t>(step % 3),
          .loss = 4.0f / static_cast<float>(step + 1) + 0.5f * static_cast<float>(rank),
          .compute_seconds = 0.001};
}

inline server::ServerOptions job(std::uint32_t workers, std::uint32_t servers, const std::string& strategy) {
  server::ServerOptions options;
  options.job.workers = workers;
  options.job.servers = servers;
  options.job.strategy = strategy;
  options.optimizer.first.lr = 0.1;
  options.optimizer.first.momentum = 0.9;
  options.members.silence = kTestTimeout;  // a thread that is starved for a while is not lost
  options.threads = 2;
  options.inline_elements = 0;  // updates run on the pool, although the model is small
  return options;
}

// A worker's pushes and the answers to them.
struct WorkerHistory {
  std::uint32_t rank = 0;
  std::uint64_t first_version = 0;  // of the weights that it began with
  std::vector<float> first_weights;
  std::vector<std::uint64_t> applied;   // for each of its pushes: the version it became part of
  std::vector<std::uint64_t> based_on;  // and the version it was computed on
  std::vector<std::uint64_t> versions;  // and, for the first ones, the version of the weights that came back
  std::vector<std::vector<float>> seen;
  std::vector<float> weights;  // last
  Status failure;
  bool stopped = false;
};

constexpr std::uint64_t kKept = 100;

enum class End { kLeaves, kIsKilled };

inline WorkerHistory run_worker(LoopbackCluster& cluster, client::Connector connector, std::uint32_t rank,
                                std::uint64_t steps, End end = End::kLeaves,
                                std::optional<Duration> reconnect = {}) {
  const auto layout = small_layout();
  auto options = cluster.worker_options(rank);
  if (reconnect) options.reconnect = *reconnect;
  auto client = client::WorkerClient::join(options, std::move(connector), layout, initial_weights(layout));
  WorkerHistory history;
  history.rank = rank;
  if (!client) {
    history.failure = client.status();
    return history;
  }
  auto& worker = **client;
  auto update = worker.pull();
  if (update) {
    history.first_version = update->version.value;
    history.first_weights.assign(worker.weights().begin(), worker.weights().end());
  }
  for (std::uint64_t step = 0; update && !update->stop && step < steps; ++step) {
    for (std::size_t i = 0; i < layout.size(); ++i) worker.gradients()[i] = gradient(rank, step, i);
    const auto based_on = update->version.value;
    update = worker.push_pull(step_report(rank, step));
    if (!update) break;
    history.applied.push_back(update->applied.value);
    history.based_on.push_back(based_on);
    if (step >= kKept) continue;
    history.versions.push_back(update->version.value);
    history.seen.emplace_back(worker.weights().begin(), worker.weights().end());
  }
  if (!update) {
    history.failure = update.status();
    return history;
  }
  history.stopped = update->stop;
  history.weights.assign(worker.weights().begin(), worker.weights().end());
  if (end == End::kLeaves) worker.leave();
  return history;
}

// All workers at the same time, each with its own connector.
template <class Connectors>
std::vector<WorkerHistory> run_workers(LoopbackCluster& cluster, std::uint32_t workers, std::uint64_t steps,
                                       Connectors connectors, std::optional<Duration> reconnect = {}) {
  std::vector<WorkerHistory> histories(workers);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < workers; ++r) {
    threads.emplace_back(
        [&, r] { histories[r] = run_worker(cluster, connectors(r), r, steps, End::kLeaves, reconnect); });
  }
  for (auto& t : threads) t.join();
  for (const auto& history : histories) EXPECT_TRUE(history.failure) << history.failure.message();
  return histories;
}

inline std::vector<WorkerHistory> run_workers(LoopbackCluster& cluster, std::uint32_t workers,
                                              std::uint64_t steps) {
  return run_workers(cluster, workers, steps, [&](std::uint32_t) { return cluster.connector(); });
}

// The weights that each worker saw last.
inline std::vector<std::vector<float>> run(LoopbackCluster& cluster, std::uint32_t workers,
                                           std::uint64_t steps) {
  std::vector<std::vector<float>> seen;
  for (auto& history : run_workers(cluster, workers, steps)) seen.push_back(std::move(history.weights));
  return seen;
}

inline void expect_near(const std::vector<float>& seen, const std::vector<double>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_NEAR(seen[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
  }
}

// SGD in double, one update per version, of the mean over the samples that became part of it; damped, with
// the learning rate divided by 1 + the updates since the weights on which the gradient was computed. Whatever
// a worker saw must have been one version, whole.
inline std::vector<double> replay(const std::vector<WorkerHistory>& histories, bool damped = false) {
  std::map<std::uint64_t, std::vector<std::pair<const WorkerHistory*, std::uint64_t>>> pushes;
  for (const auto& history : histories) {
    for (std::uint64_t step = 0; step < history.applied.size(); ++step) {
      if (const auto version = history.applied[step]) pushes[version].emplace_back(&history, step);
    }
  }
  const auto expect_begins_with = [&](std::uint64_t version, const std::vector<double>& w) {
    for (const auto& history : histories) {
      if (history.first_weights.empty() || history.first_version != version) continue;
      SCOPED_TRACE(fmt::format("worker {} begins with version {}", history.rank, version));
      expect_near(history.first_weights, w);
    }
  };
  const auto w0 = initial_weights(small_layout());
  std::vector<double> w(w0.begin(), w0.end()), m(w.size(), 0.0);
  expect_begins_with(0, w);
  std::uint64_t expected = 1;
  for (const auto& [version, merged] : pushes) {
    EXPECT_EQ(version, expected++) << "a version that no push became part of";
    const auto [first, step] = merged[0];
    const auto staleness = damped ? version - 1 - first->based_on[step] : 0;
    const double lr = 0.1 / (1 + static_cast<double>(staleness));
    double samples = 0;
    for (const auto& [history, at] : merged) samples += step_report(history->rank, at).samples;
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = 0;
      for (const auto& [history, at] : merged)
        g += step_report(history->rank, at).samples / samples * gradient(history->rank, at, i);
      m[i] = 0.9 * m[i] + g;
      w[i] -= lr * m[i];
    }
    expect_begins_with(version, w);
    for (const auto& history : histories) {
      for (std::size_t i = 0; i < history.seen.size(); ++i) {
        if (history.versions[i] != version) continue;
        SCOPED_TRACE(fmt::format("step {} of worker {} at version {}", i, history.rank, version));
        expect_near(history.seen[i], w);
      }
    }
  }
  return w;
}

// SGD with momentum on the mean gradient over the samples of all workers, in double.
inline std::vector<double> reference(std::uint32_t workers, std::uint64_t steps) {
  std::vector<WorkerHistory> histories(workers);
  for (std::uint32_t r = 0; r < workers; ++r) {
    histories[r].rank = r;
    for (std::uint64_t step = 0; step < steps; ++step) histories[r].applied.push_back(step + 1);
  }
  return replay(histories);
}

// The weights that an observer requested, once they have arrived; none after kTestTimeout.
inline std::optional<client::Observer::Snapshot> await_weights(client::Observer& observer) {
  const auto give_up = SteadyClock::now() + kTestTimeout;
  auto snapshot = observer.take_weights();
  while (!snapshot && SteadyClock::now() < give_up) {
    if (!observer.poll(SteadyClock::now() + std::chrono::milliseconds(10))) return {};
    snapshot = observer.take_weights();
  }
  return snapshot;
}

inline std::uint64_t applied_pushes(const std::vector<WorkerHistory>& histories) {
  std::uint64_t count = 0;
  for (const auto& history : histories) {
    for (const auto version : history.applied) count += version > 0;
  }
  return count;
}

}  // namespace capstan::testing::play
