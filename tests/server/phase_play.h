#pragma once

#include <cmath>
#include <future>

#include <gtest/gtest.h>

#include "support/loopback_cluster.h"

// A small model with two phases, workers that push known gradients, and plain arithmetic for the expected
// result.
namespace capstan::testing::phase_play {

using Vector = std::vector<double>;

constexpr std::uint64_t kWarmup = 5;  // so that it matters whose version the learning rate follows
constexpr double kUnused = 1e6;       // in a push, for tensors of other phases

// Split between two servers in the middle of g.weight; both phases are on both servers.
inline FlatLayout four_tensors() {
  return FlatLayout({{"d.weight", {40, 30}}, {"g.weight", {50, 20}}, {"d.bias", {30}}, {"g.bias", {7}}});
}

inline std::vector<StepPhase> d_then_g() {
  return {{"discriminator", {"d.*"}}, {"generator", {"g.*"}}};
}

// -1 in the gaps between tensors.
inline int phase_of(std::size_t element) {
  const auto layout = four_tensors();
  for (std::size_t t = 0; t < 4; ++t) {
    if (layout.range(t).contains({element, element + 1}))
      return layout.tensors()[t].name.starts_with("d.") ? 0 : 1;
  }
  return -1;
}

inline Vector start() {
  Vector w(four_tensors().size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = phase_of(i) < 0 ? 0 : std::sin(static_cast<double>(i));
  return w;
}

// Of half of Σ a·(x - c)², with a centre of its own for each worker, step and phase, always far from x: so
// Adam's division does not blow up what floats round off. The other phase's mean weight matters, too.
inline Vector gradient(const Vector& at, std::uint32_t w, std::uint64_t step, int phase) {
  double other = 0;
  for (std::size_t i = 0; i < at.size(); ++i) other += phase_of(i) == 1 - phase ? at[i] / 1500 : 0;
  Vector g(at.size(), 0);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto centre = 3 + other + 0.5 * std::cos(1.0 + static_cast<double>(i + 3 * w + 7 * step));
    if (phase_of(i) == phase) g[i] = (0.2 + static_cast<double>(i % 11) / 20) * (at[i] - centre);
    if (phase_of(i) == 1 - phase) g[i] = kUnused;
  }
  return g;
}

// SGD with momentum for the generator, Adam for the discriminator.
class Arithmetic {
 public:
  // One update of a phase, at the learning rate of the job's version.
  void update(int phase, const Vector& g) {
    const double warm = std::min(1.0, static_cast<double>(version[1] + 1) / kWarmup);
    const auto t = static_cast<double>(++version[phase]);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (phase_of(i) != phase) continue;
      if (phase == 1) {
        m_[i] = 0.9 * m_[i] + g[i];
        w[i] -= 0.02 * warm * m_[i];
        continue;
      }
      m_[i] = 0.5 * m_[i] + 0.5 * g[i];
      v_[i] = 0.999 * v_[i] + 0.001 * g[i] * g[i];
      w[i] -= 0.002 * warm * (m_[i] / (1 - std::pow(0.5, t))) /
              (std::sqrt(v_[i] / (1 - std::pow(0.999, t))) + 1e-8);
    }
  }

  Vector w = start();
  std::uint64_t version[2] = {};

 private:
  Vector m_ = Vector(w.size()), v_ = m_;
};

// What a worker of this model declares.
inline wire::Join worker_join(std::uint32_t rank,
                              const std::vector<wire::Phase>& phases = wire::to_wire(d_then_g())) {
  wire::Join join;
  join.index = rank;
  join.incarnation = {1};
  join.layout = wire::to_wire(four_tensors());
  join.phases = phases;
  return join;
}

inline std::vector<float> part(const Vector& whole, const Range& range) {
  return {whole.begin() + static_cast<std::ptrdiff_t>(range.begin),
          whole.begin() + static_cast<std::ptrdiff_t>(range.end)};
}

class Worker {
 public:
  Worker(LoopbackCluster& cluster, std::uint32_t rank, std::vector<StepPhase> phases = d_then_g(),
         const client::Connector& connector = {})
      : rank_(rank) {
    const auto initial = start();
    auto options = cluster.worker_options(rank);
    options.reconnect = kTestTimeout;
    auto client = client::WorkerClient::join(
        options, connector ? connector : cluster.connector(), four_tensors(),
        std::vector<float>(initial.begin(), initial.end()), {.buffers = {}, .data = {}, .phases = phases});
    EXPECT_TRUE(client) << client.status().message();
    client_ = std::move(*client);
  }
  client::Update begin() { return taken(client_->pull()); }
  // The next phase; the gradient is that of the job's version.
  client::Update push() {
    const auto g = gradient({client_->weights().begin(), client_->weights().end()}, rank_, version_, phase_);
    std::ranges::transform(g, client_->gradients().begin(), [](double v) { return static_cast<float>(v); });
    client::StepReport report{.samples = 8};
    report.phase = static_cast<std::uint32_t>(phase_);
    report.steps = static_cast<std::uint64_t>(phase_);
    phase_ = 1 - phase_;
    return taken(client_->push_pull(report));
  }
  void train(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < 2 * steps; ++i) push();
  }
  void leave() { client_->leave(); }
  client::WorkerClient& client() { return *client_; }

 private:
  client::Update taken(const Result<client::Update>& update) {
    EXPECT_TRUE(update) << update.status().message();
    version_ = update->version.value;
    return *update;
  }

  const std::uint32_t rank_;
  std::unique_ptr<client::WorkerClient> client_;
  std::uint64_t version_ = 0;
  int phase_ = 0;
};

inline server::ServerOptions options_of(const std::string& strategy, std::uint32_t workers,
                                        std::uint32_t servers) {
  server::ServerOptions options;
  options.job.strategy = strategy;
  options.job.workers = workers;
  options.job.servers = servers;
  options.optimizer = optimizer::parse_spec("default=sgd:lr=0.02:momentum=0.9,d.*=adam:lr=0.002:beta1=0.5",
                                            optimizer::defaults);
  options.schedule.warmup = kWarmup;
  options.members.silence = kTestTimeout;
  options.threads = 2;
  options.inline_elements = 0;
  return options;
}

template <class Function>
void on_all(std::vector<std::unique_ptr<Worker>>& workers, const Function& function) {
  std::vector<std::future<void>> running;
  for (auto& worker : workers) running.push_back(std::async(std::launch::async, [&] { function(*worker); }));
  for (auto& r : running) r.get();
}

inline std::vector<std::unique_ptr<Worker>> joined_without_pull(LoopbackCluster& cluster,
                                                                std::uint32_t count) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t w = 0; w < count; ++w) workers.push_back(std::make_unique<Worker>(cluster, w));
  return workers;
}

inline std::vector<std::unique_ptr<Worker>> joined(LoopbackCluster& cluster, std::uint32_t count) {
  auto workers = joined_without_pull(cluster, count);
  on_all(workers, [](Worker& worker) { worker.begin(); });
  return workers;
}

inline void expect(LoopbackCluster& cluster, const Arithmetic& expected) {
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, expected.version[1]);
  const auto weights = cluster.weights();
  ASSERT_EQ(weights.size(), expected.w.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    ASSERT_NEAR(weights[i], expected.w[i], 1e-6 * std::max(1.0, std::abs(expected.w[i]))) << "element " << i;
}

}  // namespace capstan::testing::phase_play
