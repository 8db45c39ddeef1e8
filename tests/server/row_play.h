#pragma once

#include <cmath>
#include <future>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/loopback_cluster.h"

// A small model with two row tensors, workers that push known rows, and plain arithmetic for the expected
// result.
namespace capstan::testing::row_play {

constexpr std::uint64_t kPage = 1024;  // elements

// Three servers have two pages each; so row 292 of `emb` and row 4 of `bag` are cut.
inline FlatLayout four_tensors() {
  return FlatLayout({{"emb", {300, 7}, true}, {"fc", {64, 30}}, {"bag", {90, 13}, true}, {"bias", {5}}});
}

inline std::vector<float> initial_weights() {
  const auto layout = four_tensors();
  std::vector<float> w(layout.size());
  for (std::size_t t = 0; t < 4; ++t)
    for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i)
      w[i] = 0.01f * static_cast<float>(i % 97) - 0.4f;
  return w;
}

// The rows of a worker's step: always the ones that are cut, and some that other workers have, too. Some
// steps have none of `bag`.
inline std::vector<std::uint32_t> rows_of(std::uint32_t rank, std::uint64_t step, std::size_t tensor) {
  std::set<std::uint32_t> rows;
  if (tensor == 0) {
    for (std::uint32_t i = 0; i < 9; ++i)
      rows.insert((31 * i * i + 17 * rank + 5 * static_cast<std::uint32_t>(step)) % 300);
    rows.insert(292);
  }
  if (tensor == 2 && (step + rank) % 3 != 0) {
    for (std::uint32_t i = 0; i < 4; ++i)
      rows.insert((7 * i + rank + 2 * static_cast<std::uint32_t>(step)) % 90);
    rows.insert(4);
  }
  return {rows.begin(), rows.end()};
}

inline RowLists all_rows_of(std::uint32_t rank, std::uint64_t step) {
  RowLists lists;
  for (std::size_t t = 0; t < 4; ++t) lists.push_back(rows_of(rank, step, t));
  return lists;
}

// Far from zero, so that Adam's division does not blow up what floats round off.
inline float gradient(std::uint32_t rank, std::uint64_t step, std::size_t i) {
  return 0.1f + 0.01f * static_cast<float>((rank + 1) * (i % 13 + 1)) + 0.02f * static_cast<float>(step % 5);
}

inline std::uint32_t samples(std::uint32_t rank, std::uint64_t step) {
  return 8 + 4 * rank + static_cast<std::uint32_t>(step % 3);
}

inline std::set<std::uint64_t> elements_of(const std::vector<std::uint32_t>& rows, std::size_t tensor) {
  const auto layout = four_tensors();
  const auto columns = static_cast<std::uint64_t>(layout.tensors()[tensor].dims[1]);
  std::set<std::uint64_t> elements;
  for (const auto row : rows)
    for (std::uint64_t c = 0; c < columns; ++c) elements.insert(layout.offset(tensor) + row * columns + c);
  return elements;
}

// The whole gradient; what must not be read is not a number.
inline std::vector<float> pushed_gradient(std::uint32_t rank, std::uint64_t step) {
  const auto layout = four_tensors();
  std::vector<float> g(layout.size(), 0);
  for (std::size_t t = 0; t < 4; ++t) {
    const bool sparse = layout.tensors()[t].sparse;
    const auto range = layout.range(t);
    for (auto i = range.begin; i < range.end; ++i) g[i] = sparse ? NAN : gradient(rank, step, i);
    if (sparse)
      for (const auto i : elements_of(rows_of(rank, step, t), t)) g[i] = gradient(rank, step, i);
  }
  return g;
}

// emb: sparse-adam; fc, bias: sgd with momentum; bag: adagrad.
inline server::ServerOptions job(std::uint32_t workers, std::uint32_t servers, const std::string& strategy) {
  server::ServerOptions options;
  options.job.workers = workers;
  options.job.servers = servers;
  options.job.strategy = strategy;
  options.optimizer = optimizer::parse_spec(
      "default=sgd:lr=0.1:momentum=0.9,emb=sparse-adam:lr=0.01:beta1=0.8:beta2=0.99,bag=adagrad:lr=0.05",
      optimizer::defaults);
  options.members.silence = kTestTimeout;
  options.members.reconnect = kTestTimeout;
  options.threads = 2;
  options.inline_elements = 0;
  return options;
}

// One update of all tensors by the pushes that became part of it: (rank, step), in double.
class Arithmetic {
 public:
  void update(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& pushes) {
    ++version;
    const auto layout = four_tensors();
    double all = 0;
    for (const auto& [rank, step] : pushes) all += samples(rank, step);
    for (std::size_t t = 0; t < 4; ++t) {
      std::map<std::uint64_t, double> g;
      for (const auto& [rank, step] : pushes) {
        const double factor = samples(rank, step) / all;
        if (layout.tensors()[t].sparse) {
          for (const auto i : elements_of(rows_of(rank, step, t), t))
            g[i] += factor * gradient(rank, step, i);
        } else {
          for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i)
            g[i] += factor * gradient(rank, step, i);
        }
      }
      for (const auto& [i, value] : g) step_of(t, i, value);
    }
  }

  std::uint64_t version = 0;
  std::vector<double> w = start();

 private:
  static std::vector<double> start() {
    const auto initial = initial_weights();
    return {initial.begin(), initial.end()};
  }
  void step_of(std::size_t tensor, std::size_t i, double g) {
    const auto t = static_cast<double>(version);
    if (tensor == 0) {
      m_[i] = 0.8 * m_[i] + 0.2 * g;
      v_[i] = 0.99 * v_[i] + 0.01 * g * g;
      w[i] -= 0.01 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.8, t)) * m_[i] /
              (std::sqrt(v_[i]) + 1e-8);
    } else if (tensor == 2) {
      v_[i] += g * g;
      w[i] -= 0.05 * g / (std::sqrt(v_[i]) + 1e-10);
    } else {
      m_[i] = 0.9 * m_[i] + g;
      w[i] -= 0.1 * m_[i];
    }
  }

  std::vector<double> m_ = std::vector<double>(w.size()), v_ = m_;
};

template <class Weights>
void expect_near(const Weights& seen, const std::vector<double>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    ASSERT_NEAR(seen[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

// A worker's pushes and the answers to them.
struct History {
  std::uint32_t rank = 0;
  std::vector<std::uint64_t> applied;   // for each push: the version that it became part of
  std::vector<std::uint64_t> versions;  // of the weights that came back; first those of the first pull
  std::vector<std::vector<float>> seen;
  client::WorkerClient::Traffic traffic;
};

inline std::unique_ptr<client::WorkerClient> join(LoopbackCluster& cluster, std::uint32_t rank,
                                                  const client::Connector& connector = {}) {
  auto options = cluster.worker_options(rank);
  options.reconnect = kTestTimeout;
  auto client = client::WorkerClient::join(options, connector ? connector : cluster.connector(),
                                           four_tensors(), initial_weights());
  EXPECT_TRUE(client) << client.status().message();
  return std::move(*client);
}

inline Result<client::Update> push(client::WorkerClient& client, std::uint32_t rank, std::uint64_t step) {
  std::ranges::copy(pushed_gradient(rank, step), client.gradients().begin());
  return client.push_pull({.samples = samples(rank, step)}, all_rows_of(rank, step));
}

inline void note(History& history, client::WorkerClient& client, const client::Update& update) {
  history.versions.push_back(update.version.value);
  history.seen.emplace_back(client.weights().begin(), client.weights().end());
}

enum class End { kLeaves, kIsKilled };

inline History run_worker(LoopbackCluster& cluster, std::uint32_t rank, std::uint64_t steps,
                          const client::Connector& connector = {}, End end = End::kLeaves) {
  History history;
  history.rank = rank;
  const auto client = join(cluster, rank, connector);
  auto update = client->pull();
  EXPECT_TRUE(update) << update.status().message();
  if (update) note(history, *client, *update);
  for (std::uint64_t step = 0; update && step < steps; ++step) {
    update = push(*client, rank, step);
    EXPECT_TRUE(update) << update.status().message();
    if (!update) break;
    history.applied.push_back(update->applied.value);
    note(history, *client, *update);
  }
  history.traffic = client->traffic();
  if (update && end == End::kLeaves) client->leave();
  return history;
}

template <class Connectors>
std::vector<History> run_workers(LoopbackCluster& cluster, std::uint32_t workers, std::uint64_t steps,
                                 Connectors connectors) {
  std::vector<std::future<History>> running;
  for (std::uint32_t r = 0; r < workers; ++r)
    running.push_back(
        std::async(std::launch::async, [&, r] { return run_worker(cluster, r, steps, connectors(r)); }));
  std::vector<History> histories;
  for (auto& worker : running) histories.push_back(worker.get());
  return histories;
}

inline std::vector<History> run_workers(LoopbackCluster& cluster, std::uint32_t workers,
                                        std::uint64_t steps) {
  return run_workers(cluster, workers, steps, [](std::uint32_t) { return client::Connector(); });
}

// Repeats all updates. Whatever a worker saw was one version, whole.
inline Arithmetic replay(const std::vector<History>& histories) {
  std::map<std::uint64_t, std::vector<std::pair<std::uint32_t, std::uint64_t>>> pushes;
  for (const auto& history : histories)
    for (std::uint64_t step = 0; step < history.applied.size(); ++step)
      if (const auto version = history.applied[step]) pushes[version].emplace_back(history.rank, step);
  Arithmetic a;
  const auto expect_seen = [&] {
    for (const auto& history : histories) {
      for (std::size_t i = 0; i < history.seen.size(); ++i) {
        if (history.versions[i] != a.version) continue;
        SCOPED_TRACE(fmt::format("answer {} of worker {} at version {}", i, history.rank, a.version));
        expect_near(history.seen[i], a.w);
      }
    }
  };
  expect_seen();
  for (const auto& [version, merged] : pushes) {
    a.update(merged);
    EXPECT_EQ(version, a.version) << "a version that no push became part of";
    expect_seen();
  }
  return a;
}

// Followers are numbered in the order in which they join the leader, so the weights of several are not in the
// model's order; replay() compares what workers saw of them.
inline void expect_finished(LoopbackCluster& cluster, const Arithmetic& expected) {
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, expected.version);
  if (cluster.link_options().servers.size() <= 2) expect_near(cluster.weights(), expected.w);
}

}  // namespace capstan::testing::row_play
