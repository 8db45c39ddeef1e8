// Groups of tensors with real servers and clients, against a few lines of plain arithmetic: how each group
// updates its tensors, with momentum and with Adam.

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loopback_cluster.h"

namespace capstan {
namespace {

using testing::LoopbackCluster;
using Vector = std::vector<double>;
using ::testing::HasSubstr;

constexpr std::uint64_t kWarmup = 5;  // so that it matters whose version the learning rate follows

// Split between two servers in the middle of b.weight; both groups are on both servers.
FlatLayout four_tensors() {
  return FlatLayout({{"a.weight", {40, 30}}, {"a.bias", {30}}, {"b.weight", {50, 20}}, {"b.bias", {7}}});
}

Vector start() {
  Vector w(four_tensors().size());
  const auto layout = four_tensors();
  for (std::size_t t = 0; t < 4; ++t) {
    for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i)
      w[i] = std::sin(static_cast<double>(i));
  }
  return w;
}

// Of half of Σ a·(x - c)², with a centre of its own for each worker and step, always far from x: so Adam's
// division does not blow up what floats round off.
Vector gradient(const Vector& at, std::uint32_t w, std::uint64_t s) {
  const auto layout = four_tensors();
  Vector g(at.size());
  for (std::size_t t = 0; t < 4; ++t) {
    for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i) {
      const auto centre = 3 + 0.5 * std::cos(1.0 + static_cast<double>(i + 3 * w + 7 * s));
      g[i] = (0.2 + static_cast<double>(i % 11) / 20) * (at[i] - centre);
    }
  }
  return g;
}

class Worker {
 public:
  Worker(LoopbackCluster& cluster, std::uint32_t rank) : rank_(rank) {
    const auto initial = start();
    auto client =
        client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(), four_tensors(),
                                   std::vector<float>(initial.begin(), initial.end()));
    EXPECT_TRUE(client) << client.status().message();
    client_ = std::move(*client);
  }
  void begin() { EXPECT_TRUE(client_->pull()); }
  void push(std::uint32_t samples) {
    const auto g = gradient({client_->weights().begin(), client_->weights().end()}, rank_, step_++);
    std::ranges::transform(g, client_->gradients().begin(), [](double v) { return static_cast<float>(v); });
    const auto update = client_->push_pull({samples});
    EXPECT_TRUE(update) << update.status().message();
  }
  void leave() { client_->leave(); }
  std::uint64_t pushes() const { return step_; }

 private:
  const std::uint32_t rank_;
  std::unique_ptr<client::WorkerClient> client_;
  std::atomic<std::uint64_t> step_ = 0;
};

// Weights with optimizer state; each group makes its own updates.
class Arithmetic {
 public:
  Arithmetic(bool adam, bool (*is_in_group)(const std::string&)) : adam_(adam) {
    const auto layout = four_tensors();
    group_.resize(layout.size());
    for (std::size_t t = 0; t < 4; ++t) {
      for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i)
        group_[i] = is_in_group(layout.tensors()[t].name) ? 1 : 0;
    }
  }

  // One update of a group, at the learning rate of the job's version `job`.
  void update(std::size_t group, const Vector& g, std::uint64_t job) {
    const double rate = (adam_ ? 0.002 : 0.02) * std::min(1.0, static_cast<double>(job + 1) / kWarmup);
    const auto t = static_cast<double>(++version[group]);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (group_[i] != group) continue;
      if (!adam_) {
        m_[i] = 0.9 * m_[i] + g[i];
        w[i] -= rate * m_[i];
        continue;
      }
      m_[i] = 0.9 * m_[i] + 0.1 * g[i];
      v_[i] = 0.999 * v_[i] + 0.001 * g[i] * g[i];
      w[i] -= rate * (m_[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v_[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }

  Vector w = start();
  std::uint64_t version[2] = {};

 private:
  const bool adam_;
  std::vector<std::size_t> group_;
  Vector m_ = Vector(w.size()), v_ = m_;
};

bool is_weight(const std::string& name) {
  return name.ends_with(".weight");
}
bool is_b(const std::string& name) {
  return name.starts_with("b.");
}

Vector mean(const std::vector<Vector>& gradients) {
  Vector sum(gradients[0].size());
  for (const auto& g : gradients) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += g[i] / static_cast<double>(gradients.size());
  }
  return sum;
}

class GroupRules : public ::testing::TestWithParam<std::tuple<bool, bool, std::uint32_t>> {
 protected:
  const bool adam_ = std::get<0>(GetParam());
  std::unique_ptr<LoopbackCluster> cluster_;
  std::unique_ptr<client::Observer> observer_;
  std::vector<std::unique_ptr<Worker>> workers_;

  void begin(std::uint32_t workers, const std::string& strategy) {
    server::ServerOptions options;
    options.job.strategy = strategy;
    options.job.workers = workers;
    options.job.servers = std::get<2>(GetParam());
    options.optimizer = optimizer::defaults(adam_ ? optimizer::Kind::kAdam : optimizer::Kind::kSgd);
    options.optimizer.first.lr = adam_ ? 0.002 : 0.02;
    if (!adam_) options.optimizer.first.momentum = 0.9;
    options.schedule.warmup = kWarmup;
    options.threads = 2;
    options.inline_elements = 0;
    cluster_ = std::make_unique<LoopbackCluster>(std::get<1>(GetParam()), options);
    for (std::uint32_t w = 0; w < workers; ++w) workers_.push_back(std::make_unique<Worker>(*cluster_, w));
    std::vector<std::future<void>> running;
    for (auto& worker : workers_)
      running.push_back(std::async(std::launch::async, [&worker] { worker->begin(); }));
    for (auto& r : running) r.get();
    auto observer = client::Observer::join(cluster_->link_options(), cluster_->connector());
    ASSERT_TRUE(observer) << observer.status().message();
    observer_ = std::move(*observer);
  }

  // These push one after the other, each once the one before has been counted, and all have their answers.
  void push_in_turn(const std::vector<std::uint32_t>& ranks, std::uint32_t samples = 8) {
    std::vector<std::future<void>> running;
    for (const auto r : ranks) {
      const auto before = workers_[r]->pushes();
      running.push_back(std::async(std::launch::async, [&, r] { workers_[r]->push(samples); }));
      ASSERT_TRUE(testing::eventually([&] {
        const auto status = observer_->status();
        return status && status->workers[r].pushes != before;
      }));
    }
    for (auto& r : running) r.get();
  }

  void expect(const Arithmetic& expected) {
    std::vector<std::future<void>> running;
    for (auto& worker : workers_)
      running.push_back(std::async(std::launch::async, [&worker] { worker->leave(); }));
    for (auto& r : running) r.get();
    observer_.reset();
    EXPECT_EQ(cluster_->outcome(), server::Server::Outcome::kFinished);
    EXPECT_EQ(cluster_->report().version.value, expected.version[0]);
    const auto weights = cluster_->weights();
    ASSERT_EQ(weights.size(), expected.w.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(weights[i], expected.w[i], 1e-6 * std::max(1.0, std::abs(expected.w[i])))
          << "element " << i;
  }
};
INSTANTIATE_TEST_SUITE_P(With, GroupRules,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Values(1u, 2u)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) ? "Adam" : "Momentum") +
                                  (std::get<1>(param.param) ? "Shared" : "Copied") +
                                  std::to_string(std::get<2>(param.param));
                         });

// In which order workers push, in one round.
std::vector<std::uint32_t> order(std::uint32_t round) {
  const std::vector<std::uint32_t> orders[] = {{0, 1, 2}, {2, 0, 1}, {1, 0, 2}, {2, 1, 0}};
  return orders[round % 4];
}

TEST_P(GroupRules, SyncWithAnAsynchronousGroup) {
  begin(3, "default=sync,*.weight=async");
  Arithmetic a(adam_, is_weight);
  for (std::uint32_t round = 0; round < 8; ++round) {
    push_in_turn(order(round));
    const auto read = a.w;  // all continued with the same weights
    std::vector<Vector> gradients;
    for (const auto w : order(round)) {
      gradients.push_back(gradient(read, w, round));
      a.update(1, gradients.back(), round);
    }
    a.update(0, mean(gradients), round);
  }
  EXPECT_EQ(a.version[1], 24u);
  expect(a);
}

TEST_P(GroupRules, AsyncWithABatchedGroup) {
  begin(3, "b.*=batch:2,default=async");
  Arithmetic a(adam_, is_b);
  std::vector<Vector> read(3, a.w);
  std::vector<std::uint64_t> step(3);
  for (std::uint32_t round = 0; round < 9; ++round) {
    const std::uint32_t first = round % 3, second = (round + 1) % 3;
    push_in_turn({first, second});
    const auto g1 = gradient(read[first], first, step[first]++);
    const auto g2 = gradient(read[second], second, step[second]++);
    a.update(0, g1, a.version[0]);
    const auto job = a.version[0];  // when the push came that made the update of both groups
    a.update(0, g2, job);
    a.update(1, mean({g1, g2}), job);
    read[first] = read[second] = a.w;
  }
  EXPECT_EQ(a.version[0], 18u);
  EXPECT_EQ(a.version[1], 9u);
  expect(a);
}

TEST_P(GroupRules, SyncWithADelayCompensatedGroup) {
  begin(3, "default=sync,*.weight=dc-asgd:0.4");
  Arithmetic a(adam_, is_weight);
  for (std::uint32_t round = 0; round < 8; ++round) {
    push_in_turn(order(round));
    const auto taken = a.w;
    std::vector<Vector> gradients;
    for (const auto w : order(round)) {
      auto g = gradient(taken, w, round);
      gradients.push_back(g);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] += 0.4 * g[i] * g[i] * (a.w[i] - taken[i]);
      a.update(1, g, round);
    }
    a.update(0, mean(gradients), round);
  }
  expect(a);
}

TEST_P(GroupRules, AsyncWithAnAdaptivelyCompensatedGroup) {
  begin(3, "default=async,b.*=dc-asgd-a:0.3");
  Arithmetic a(adam_, is_b);
  std::vector<Vector> taken(3, a.w);
  std::vector<std::uint64_t> step(3);
  Vector square(a.w.size());
  for (const std::uint32_t w : {0u, 0u, 1u, 2u, 0u, 1u, 1u, 2u, 0u, 2u, 2u, 1u}) {
    push_in_turn({w});
    const auto g = gradient(taken[w], w, step[w]++);
    auto corrected = g;
    for (std::size_t i = 0; i < g.size(); ++i) {
      square[i] = 0.95 * square[i] + 0.05 * g[i] * g[i];
      corrected[i] += 0.3 / std::sqrt(square[i] + 1e-7) * g[i] * g[i] * (a.w[i] - taken[w][i]);
    }
    const auto job = a.version[0];
    a.update(0, g, job);
    a.update(1, corrected, job);
    taken[w] = a.w;
  }
  expect(a);
}

// No worker computes during an update: weights are read in place, and it is sync of one group.
TEST_P(GroupRules, GroupsThatAllParkAll) {
  begin(3, "default=sync,*.weight=batch");
  Arithmetic a(adam_, is_weight);
  for (std::uint32_t round = 0; round < 8; ++round) {
    push_in_turn(order(round));
    std::vector<Vector> gradients;
    for (std::uint32_t w = 0; w < 3; ++w) gradients.push_back(gradient(a.w, w, round));
    a.update(0, mean(gradients), round);
    a.update(1, mean(gradients), round);
  }
  expect(a);
}

// A server that the user starts receives the tensors' names from the first worker.
TEST(GroupsOfAServer, WithoutTensorsRefuseTheWorkerAndWaitForABetterOne) {
  server::ServerOptions options;
  options.job.strategy = "default=sync,fc*=async";
  options.optimizer.first.lr = 0.1;
  LoopbackCluster cluster(true, options);
  const auto wrong = four_tensors();
  const auto refused = client::WorkerClient::join(cluster.worker_options(0), cluster.connector(), wrong,
                                                  std::vector<float>(wrong.size()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.status().message(), HasSubstr("group fc* matches no tensor of this model"));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  EXPECT_EQ((*observer)->status()->workers[0].state, wire::WorkerState::kAbsent) << "and not lost";
  observer->reset();
  const FlatLayout right({{"conv", {5}}, {"fc1", {5}}});
  auto taken = client::WorkerClient::join(cluster.worker_options(0), cluster.connector(), right,
                                          std::vector<float>(right.size()));
  ASSERT_TRUE(taken) << taken.status().message();
  EXPECT_EQ((*taken)->strategy(), "default=sync,fc*=async");
  ASSERT_TRUE((*taken)->pull());
  (*taken)->leave();
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
}

}  // namespace
}  // namespace capstan
