// Every strategy's update rule with real servers and clients, against a few lines of plain arithmetic: on a
// quadratic, and on a small network of two layers.

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/strategy/strategy_spec.h"
#include "server/play.h"

namespace capstan {
namespace {

using testing::LoopbackCluster;
using Vector = std::vector<double>;

// ---- two problems ----

struct Problem {
  const char* name;
  FlatLayout layout;
  Vector start;
  // Of worker w's loss at its step s.
  std::function<Vector(const Vector& at, std::uint32_t w, std::uint64_t s)> gradient;
};

// Half of Σ a·(x - c)², with a centre of its own for each worker and step.
Problem quadratic() {
  constexpr std::size_t kSize = 12;
  const FlatLayout layout({{"x", {static_cast<std::int64_t>(kSize)}}});
  Vector start(layout.size());  // with gaps, which stay zero
  for (std::size_t i = 0; i < kSize; ++i) start[i] = std::sin(static_cast<double>(i));
  return {"quadratic", layout, start, [](const Vector& at, std::uint32_t w, std::uint64_t s) {
            Vector g(at.size());
            for (std::size_t i = 0; i < kSize; ++i) {
              const auto centre = std::cos(1.0 + static_cast<double>(i + 3 * w + 7 * s));
              g[i] = (0.5 + static_cast<double>(i) / 10) * (at[i] - centre);
            }
            return g;
          }};
}

// tanh(W1·u + b1), then W2·h + b2; half the squared error at one point for each worker and step.
Problem network() {
  const FlatLayout layout({{"w1", {4, 3}}, {"b1", {4}}, {"w2", {1, 4}}, {"b2", {1}}});
  Vector start(layout.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i)
      start[i] = 0.7 * std::sin(3.0 + static_cast<double>(5 * t + i));
  }
  return {"network", layout, start, [layout](const Vector& at, std::uint32_t w, std::uint64_t s) {
            const auto w1 = layout.offset(0), b1 = layout.offset(1), w2 = layout.offset(2),
                       b2 = layout.offset(3);
            const double u[] = {std::sin(1.0 + w + static_cast<double>(s)),
                                std::cos(2.0 * w + static_cast<double>(s)), 0.5};
            const double wanted = u[0] * u[1] + 0.3;
            double h[4], out = at[b2];
            for (std::size_t i = 0; i < 4; ++i) {
              double z = at[b1 + i];
              for (std::size_t j = 0; j < 3; ++j) z += at[w1 + 3 * i + j] * u[j];
              h[i] = std::tanh(z);
              out += at[w2 + i] * h[i];
            }
            const double error = out - wanted;
            Vector g(at.size());
            g[b2] = error;
            for (std::size_t i = 0; i < 4; ++i) {
              g[w2 + i] = error * h[i];
              const double back = error * at[w2 + i] * (1 - h[i] * h[i]);
              g[b1 + i] = back;
              for (std::size_t j = 0; j < 3; ++j) g[w1 + 3 * i + j] = back * u[j];
            }
            return g;
          }};
}

constexpr double kRate = 0.1;

void descend(Vector& x, const Vector& g, double rate = kRate) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * g[i];
}

// ---- workers ----

server::ServerOptions job(std::uint32_t workers, std::uint32_t servers, const std::string& strategy) {
  server::ServerOptions options;
  options.job.strategy = strategy;
  options.job.workers = workers;
  options.job.servers = servers;
  options.optimizer.first.lr = kRate;
  options.optimizer.first.momentum = 0;
  options.threads = 1;
  return options;
}

// A worker without libtorch: it computes with plain arithmetic and receives its settings from the servers.
class Worker {
 public:
  Worker(LoopbackCluster& cluster, const Problem& problem, std::uint32_t rank)
      : problem_(problem), rank_(rank) {
    const std::vector<float> initial(problem.start.begin(), problem.start.end());
    auto client = client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(),
                                             problem.layout, initial);
    EXPECT_TRUE(client) << client.status().message();
    client_ = std::move(*client);
    local_steps_ =
        strategy::parse_strategy_spec(client_->strategy(), client_->workers()).first->local_steps();
  }

  void begin() {
    EXPECT_TRUE(client_->pull());
    own_ = given();
  }
  Vector given() const { return {client_->weights().begin(), client_->weights().end()}; }

  // One push: a gradient on the pulled weights, or local steps. Returns whether the push was used.
  bool push(std::uint32_t samples = 8, std::uint64_t steps = 1) {
    Vector out;
    if (!local_steps_.uses_local_steps()) {
      out = problem_.gradient(given(), rank_, step_++);
    } else {
      for (std::uint64_t i = 0; i < steps; ++i) descend(own_, problem_.gradient(own_, rank_, step_++));
      out = own_;
      if (local_steps_.payload == strategy::LocalSteps::Payload::kDelta) {
        out = given();
        descend(out, own_, 1);
      }
    }
    std::ranges::transform(out, client_->gradients().begin(), [](double v) { return static_cast<float>(v); });
    const auto update = client_->push_pull({samples, 0, 0, 0, local_steps_.uses_local_steps() ? steps : 1});
    EXPECT_TRUE(update) << update.status().message();
    const auto now = given();
    for (std::size_t i = 0; local_steps_.uses_local_steps() && i < now.size(); ++i)
      own_[i] -= local_steps_.move * (own_[i] - now[i]);
    return update && update->applied != Version{};
  }
  void leave() { client_->leave(); }

 private:
  const Problem& problem_;
  const std::uint32_t rank_;
  std::unique_ptr<client::WorkerClient> client_;
  strategy::LocalSteps local_steps_;
  Vector own_;  // with local steps
  std::uint64_t step_ = 0;
};

class Rules : public ::testing::TestWithParam<std::tuple<bool, bool, std::uint32_t>> {
 protected:
  const Problem problem_ = std::get<0>(GetParam()) ? network() : quadratic();
  std::unique_ptr<LoopbackCluster> cluster_;
  std::vector<std::unique_ptr<Worker>> workers_;

  void start(
      std::uint32_t workers, const std::string& strategy,
      const std::function<void(server::ServerOptions&)>& change = [](auto&) {}) {
    auto options = job(workers, std::get<2>(GetParam()), strategy);
    change(options);
    cluster_ = std::make_unique<LoopbackCluster>(std::get<1>(GetParam()), options);
    for (std::uint32_t w = 0; w < workers; ++w)
      workers_.push_back(std::make_unique<Worker>(*cluster_, problem_, w));
    together([](Worker& worker, std::uint32_t) { worker.begin(); });
  }
  // All, or some, at the same time.
  void together(const std::function<void(Worker&, std::uint32_t)>& what,
                std::vector<std::uint32_t> ranks = {}) {
    const bool all = ranks.empty();
    for (std::uint32_t w = 0; all && w < workers_.size(); ++w) ranks.push_back(w);
    std::vector<std::future<void>> running;
    for (const auto w : ranks)
      running.push_back(std::async(std::launch::async, [&, w] { what(*workers_[w], w); }));
    for (auto& r : running) r.get();
  }
  // Leaves the job and compares the servers' final weights.
  void expect(const Vector& expected) {
    together([](Worker& worker, std::uint32_t) { worker.leave(); });
    EXPECT_EQ(cluster_->outcome(), server::Server::Outcome::kFinished);
    const auto weights = cluster_->weights();
    ASSERT_EQ(weights.size(), expected.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_NEAR(weights[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
  }
  Vector gradient(const Vector& at, std::uint32_t w, std::uint64_t s) const {
    return problem_.gradient(at, w, s);
  }
};
INSTANTIATE_TEST_SUITE_P(On, Rules,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Values(1u, 2u)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) ? "Network" : "Quadratic") +
                                  (std::get<1>(param.param) ? "Shared" : "Copied") +
                                  std::to_string(std::get<2>(param.param));
                         });

// In which order workers push, in the strategies without waiting.
const std::vector<std::uint32_t> kTurns = {0, 0, 1, 2, 0, 1, 1, 2, 0, 2, 2, 1, 0, 0, 1, 2, 1, 0, 2, 1};

TEST_P(Rules, Ssp) {
  start(3, "ssp:3");
  Vector w = problem_.start;
  std::vector<Vector> read(3, w);
  std::vector<std::uint64_t> step(3);
  for (const auto i : kTurns) {
    workers_[i]->push();
    descend(w, gradient(read[i], i, step[i]++));
    read[i] = w;
  }
  expect(w);
}

TEST_P(Rules, Backup) {
  start(3, "backup:1");
  Vector w = problem_.start;
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 6; ++t) {
    const std::uint32_t late = static_cast<std::uint32_t>(t) % 3, a = (late + 1) % 3, b = (late + 2) % 3;
    together([](Worker& worker, std::uint32_t) { EXPECT_TRUE(worker.push()); }, {a, b});
    EXPECT_FALSE(workers_[late]->push()) << "its step is over";
    auto mean = gradient(w, a, step[a]++);
    descend(mean, gradient(w, b, step[b]++), -1);
    ++step[late];
    descend(w, mean, kRate / 2);
  }
  expect(w);
  EXPECT_EQ(cluster_->report().dropped_pushes, 6u);
}

TEST_P(Rules, BatchBySamples) {
  start(3, "batch:2");
  Vector w = problem_.start;
  std::vector<Vector> read(3, w);
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 6; ++t) {
    const std::uint32_t a = static_cast<std::uint32_t>(t) % 3, b = (a + 1) % 3;
    together([&](Worker& worker, std::uint32_t rank) { worker.push(rank == a ? 6 : 2); }, {a, b});
    const auto ga = gradient(read[a], a, step[a]++), gb = gradient(read[b], b, step[b]++);
    descend(w, ga, kRate * 0.75);
    descend(w, gb, kRate * 0.25);
    read[a] = read[b] = w;
  }
  expect(w);
}

TEST_P(Rules, DelayCompensation) {
  start(3, "dc-asgd:0.4");
  Vector w = problem_.start;
  std::vector<Vector> taken(3, w);  // what each pulled last
  std::vector<std::uint64_t> step(3);
  for (const auto i : kTurns) {
    workers_[i]->push();
    auto g = gradient(taken[i], i, step[i]++);
    for (std::size_t k = 0; k < w.size(); ++k) g[k] += 0.4 * g[k] * g[k] * (w[k] - taken[i][k]);
    descend(w, g);
    taken[i] = w;
  }
  expect(w);
}

TEST_P(Rules, AdaptiveDelayCompensationWithMomentum) {
  start(3, "dc-asgd-a:0.3", [](auto& options) { options.optimizer.first.momentum = 0.5; });
  Vector w = problem_.start, square(w.size()), buffer(w.size());
  std::vector<Vector> taken(3, w);
  std::vector<std::uint64_t> step(3);
  for (const auto i : kTurns) {
    workers_[i]->push();
    const auto g = gradient(taken[i], i, step[i]++);
    for (std::size_t k = 0; k < w.size(); ++k) {
      square[k] = 0.95 * square[k] + 0.05 * g[k] * g[k];
      const double strength = 0.3 / std::sqrt(square[k] + 1e-7);
      const double corrected = g[k] + strength * g[k] * g[k] * (w[k] - taken[i][k]);
      buffer[k] = 0.5 * buffer[k] + corrected;
      w[k] -= kRate * buffer[k];
    }
    taken[i] = w;
  }
  expect(w);
}

TEST_P(Rules, ElasticAveraging) {
  start(3, "easgd:0.2:4");
  Vector w = problem_.start;
  std::vector<Vector> x(3, w);
  std::vector<std::uint64_t> step(3);
  for (const auto i : kTurns) {
    workers_[i]->push(8, 4);
    for (int t = 0; t < 4; ++t) descend(x[i], gradient(x[i], i, step[i]++));
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double delta = 0.2 * (x[i][k] - w[k]);
      x[i][k] -= delta;
      w[k] += delta;
    }
  }
  expect(w);
}

// Local SGD and federated averaging: the mean of the workers' weights, plain or by samples.
void average(const std::vector<Vector>& x, const Vector& part, Vector& w) {
  for (std::size_t k = 0; k < w.size(); ++k) {
    w[k] = 0;
    for (std::size_t i = 0; i < x.size(); ++i) w[k] += part[i] * x[i][k];
  }
}

TEST_P(Rules, LocalSgd) {
  start(3, "local-sgd:5");
  Vector w = problem_.start;
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 5; ++t) {
    together([](Worker& worker, std::uint32_t rank) { worker.push(8 + rank, 5); });
    std::vector<Vector> x(3, w);
    for (std::uint32_t i = 0; i < 3; ++i)
      for (int s = 0; s < 5; ++s) descend(x[i], gradient(x[i], i, step[i]++));
    average(x, {1.0 / 3, 1.0 / 3, 1.0 / 3}, w);
  }
  expect(w);
}

TEST_P(Rules, FederatedAveragingWithUnequalParts) {
  start(3, "fedavg");
  Vector w = problem_.start;
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 5; ++t) {
    // Worker i has i + 1 batches of eight samples an epoch.
    together([](Worker& worker, std::uint32_t rank) { worker.push(8 * (rank + 1), rank + 1); });
    std::vector<Vector> x(3, w);
    for (std::uint32_t i = 0; i < 3; ++i)
      for (std::uint32_t s = 0; s <= i; ++s) descend(x[i], gradient(x[i], i, step[i]++));
    average(x, {1.0 / 6, 2.0 / 6, 3.0 / 6}, w);
  }
  expect(w);
}

// m = 0.9·m + Δ; w -= 0.7·(Δ + 0.9·m)
void outer_step(const Vector& delta, Vector& m, Vector& w) {
  for (std::size_t k = 0; k < w.size(); ++k) {
    m[k] = 0.9 * m[k] + delta[k];
    w[k] -= 0.7 * (delta[k] + 0.9 * m[k]);
  }
}

TEST_P(Rules, DiLoCo) {
  start(3, "diloco:4");
  Vector w = problem_.start, m(w.size());
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 5; ++t) {
    together([](Worker& worker, std::uint32_t rank) { worker.push(5 * rank, 4); });
    Vector delta(w.size());
    for (std::uint32_t i = 0; i < 3; ++i) {
      auto x = w;
      for (int s = 0; s < 4; ++s) descend(x, gradient(x, i, step[i]++));
      for (std::size_t k = 0; k < w.size(); ++k) delta[k] += (w[k] - x[k]) / 3;
    }
    outer_step(delta, m, w);
  }
  expect(w);
}

// Two of three make a step, by their samples; the third began with older weights and joins a later one.
TEST_P(Rules, DecoupledDiLoCo) {
  start(3, "decoupled-diloco:4:2:0s");
  Vector w = problem_.start, m(w.size());
  std::vector<Vector> taken(3, w);
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 6; ++t) {
    const std::uint32_t a = static_cast<std::uint32_t>(t) % 3, b = (a + 1) % 3;
    together([&](Worker& worker, std::uint32_t rank) { worker.push(rank == a ? 30 : 10, 4); }, {a, b});
    Vector delta(w.size());
    for (const auto i : {a, b}) {
      auto x = taken[i];
      for (int s = 0; s < 4; ++s) descend(x, gradient(x, i, step[i]++));
      for (std::size_t k = 0; k < w.size(); ++k) delta[k] += (i == a ? 0.75 : 0.25) * (taken[i][k] - x[k]);
    }
    outer_step(delta, m, w);
    taken[a] = taken[b] = w;
  }
  expect(w);
}

TEST_P(Rules, BufferedFederatedLearning) {
  start(3, "fedbuff:4:3:0.8");
  Vector w = problem_.start, sum(w.size());
  std::vector<Vector> taken(3, w);
  std::vector<std::uint64_t> step(3), version(3);
  std::uint64_t now = 0, buffered = 0;
  for (const auto i : kTurns) {
    workers_[i]->push(8, 3);
    auto x = taken[i];
    for (int s = 0; s < 3; ++s) descend(x, gradient(x, i, step[i]++));
    const double trust = 1 / std::sqrt(1 + static_cast<double>(now - version[i]));
    for (std::size_t k = 0; k < w.size(); ++k) sum[k] += trust * (x[k] - taken[i][k]);
    if (++buffered == 4) {
      for (std::size_t k = 0; k < w.size(); ++k) w[k] += 0.8 / 4 * sum[k];
      sum.assign(w.size(), 0);
      buffered = 0;
      ++now;
    }
    taken[i] = w;
    version[i] = now;
  }
  EXPECT_EQ(now, 5u);
  expect(w);
}

// Sync for three steps, then every push is an update of its own.
TEST_P(Rules, AChangeOfStrategyOnTheWay) {
  start(3, "sync;3=async");
  Vector w = problem_.start;
  std::vector<std::uint64_t> step(3);
  for (int t = 0; t < 3; ++t) {
    together([](Worker& worker, std::uint32_t) { worker.push(); });
    Vector sum(w.size());
    for (std::uint32_t i = 0; i < 3; ++i) descend(sum, gradient(w, i, step[i]++), -1);
    descend(w, sum, kRate / 3);
  }
  std::vector<Vector> read(3, w);
  for (const auto i : kTurns) {
    workers_[i]->push();
    descend(w, gradient(read[i], i, step[i]++));
    read[i] = w;
  }
  expect(w);
}

}  // namespace
}  // namespace capstan
