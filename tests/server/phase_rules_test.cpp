// Steps of two phases with real servers and clients, against a few lines of plain arithmetic: each phase
// updates its own tensors with their own optimizer. A push's values for other tensors are not used.

#include <cmath>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "server/raw_peer.h"
#include "support/loopback_cluster.h"
#include "support/temporary_folder.h"

namespace capstan {
namespace {

using testing::eventually;
using testing::LoopbackCluster;
using testing::TemporaryFolder;
using Vector = std::vector<double>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kWarmup = 5;  // so that it matters whose version the learning rate follows
constexpr double kUnused = 1e6;       // in a push, for tensors of other phases

// Split between two servers in the middle of g.weight; both phases are on both servers.
FlatLayout four_tensors() {
  return FlatLayout({{"d.weight", {40, 30}}, {"g.weight", {50, 20}}, {"d.bias", {30}}, {"g.bias", {7}}});
}

std::vector<StepPhase> d_then_g() {
  return {{"discriminator", {"d.*"}}, {"generator", {"g.*"}}};
}

// -1 in the gaps between tensors.
int phase_of(std::size_t element) {
  const auto layout = four_tensors();
  for (std::size_t t = 0; t < 4; ++t) {
    if (layout.range(t).contains({element, element + 1}))
      return layout.tensors()[t].name.starts_with("d.") ? 0 : 1;
  }
  return -1;
}

Vector start() {
  Vector w(four_tensors().size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = phase_of(i) < 0 ? 0 : std::sin(static_cast<double>(i));
  return w;
}

// Of half of Σ a·(x - c)², with a centre of its own for each worker, step and phase, always far from x: so
// Adam's division does not blow up what floats round off. The other phase's mean weight matters, too.
Vector gradient(const Vector& at, std::uint32_t w, std::uint64_t step, int phase) {
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

class Worker {
 public:
  Worker(LoopbackCluster& cluster, std::uint32_t rank, std::vector<StepPhase> phases = d_then_g(),
         const client::Connector& connector = {})
      : rank_(rank) {
    const auto initial = start();
    auto options = cluster.worker_options(rank);
    options.reconnect = testing::kTestTimeout;
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

server::ServerOptions options_of(const std::string& strategy, std::uint32_t workers, std::uint32_t servers) {
  server::ServerOptions options;
  options.job.strategy = strategy;
  options.job.workers = workers;
  options.job.servers = servers;
  options.optimizer = optimizer::parse_spec("default=sgd:lr=0.02:momentum=0.9,d.*=adam:lr=0.002:beta1=0.5",
                                            optimizer::defaults);
  options.schedule.warmup = kWarmup;
  options.members.silence = testing::kTestTimeout;
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

std::vector<std::unique_ptr<Worker>> joined(LoopbackCluster& cluster, std::uint32_t count) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t w = 0; w < count; ++w) workers.push_back(std::make_unique<Worker>(cluster, w));
  on_all(workers, [](Worker& worker) { worker.begin(); });
  return workers;
}

void expect(LoopbackCluster& cluster, const Arithmetic& expected) {
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, expected.version[1]);
  const auto weights = cluster.weights();
  ASSERT_EQ(weights.size(), expected.w.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    ASSERT_NEAR(weights[i], expected.w[i], 1e-6 * std::max(1.0, std::abs(expected.w[i]))) << "element " << i;
}

class PhaseRules : public ::testing::TestWithParam<std::tuple<bool, std::uint32_t>> {
 protected:
  const bool shared_ = std::get<0>(GetParam());
  const std::uint32_t servers_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(With, PhaseRules, ::testing::Combine(::testing::Bool(), ::testing::Values(1u, 2u)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) ? "Shared" : "Copied") +
                                  std::to_string(std::get<1>(param.param));
                         });

TEST_P(PhaseRules, Sync) {
  LoopbackCluster cluster(shared_, options_of("sync", 3, servers_));
  auto workers = joined(cluster, 3);
  on_all(workers, [](Worker& worker) {
    worker.train(8);
    worker.leave();
  });
  Arithmetic a;
  for (std::uint64_t step = 0; step < 8; ++step) {
    for (const int phase : {0, 1}) {
      Vector mean(a.w.size());
      for (std::uint32_t w = 0; w < 3; ++w) {
        const auto g = gradient(a.w, w, step, phase);
        for (std::size_t i = 0; i < g.size(); ++i) mean[i] += g[i] / 3;
      }
      a.update(phase, mean);
    }
  }
  expect(cluster, a);
  EXPECT_EQ(cluster.report().samples, 8u * 3 * 8) << "a step's samples count once";
  // A push of the discriminator to one server also has the generator's weight, which is between its tensors.
  const std::uint64_t pushed = (1200 + 30 + (servers_ == 1 ? 1000 : 0)) + (1000 + 30 + 7);
  EXPECT_EQ(cluster.report().bytes_pushed, 3 * 8 * 4 * pushed);
  EXPECT_EQ(cluster.report().bytes_pulled, 3 * (2 * 8 + 1) * 4u * (1200 + 1000 + 30 + 7));
}

TEST_P(PhaseRules, Async) {
  LoopbackCluster cluster(shared_, options_of("async", 2, servers_));
  auto workers = joined(cluster, 2);
  Arithmetic a;
  std::vector<Vector> read(2, a.w);
  std::vector<std::uint64_t> version(2);
  std::vector<int> phase(2);
  for (const std::uint32_t w : {0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1}) {
    workers[w]->push();
    a.update(phase[w], gradient(read[w], w, version[w], phase[w]));
    read[w] = a.w;
    version[w] = a.version[1];
    phase[w] = 1 - phase[w];
  }
  for (auto& worker : workers) worker->leave();
  EXPECT_EQ(a.version[0], 10u);
  EXPECT_EQ(a.version[1], 10u);
  expect(cluster, a);
}

// ---- what a push carries ----

std::vector<float> part(const Vector& whole, std::size_t begin, std::size_t end) {
  return {whole.begin() + static_cast<std::ptrdiff_t>(begin),
          whole.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The ranges by hand: two servers split the model at element 2048.
TEST(PushesOfPhases, CarryTheirPartOfEachShard) {
  constexpr Range kParts[2][2] = {{{0, 1200}, {2208, 2240}}, {{1200, 2048}, {2048, 2256}}};
  LoopbackCluster cluster(false, options_of("async", 1, 2));
  const wire::Join join{.role = wire::Role::kWorker,
                        .index = 0,
                        .incarnation = {1},
                        .layout = wire::to_wire(four_tensors()),
                        .phases = wire::to_wire(d_then_g())};
  std::vector<std::unique_ptr<testing::RawPeer>> peers;
  for (const auto* address : {"0", "1"}) {
    ASSERT_TRUE(eventually([&] {
      auto peer = std::make_unique<testing::RawPeer>(cluster.network(), address);
      if (!peer->join(cluster.token(), join)) return false;
      peers.push_back(std::move(peer));
      return true;
    }));
  }
  peers[0]->send(wire::Pull{});
  ASSERT_TRUE(peers[0]->next<wire::SendWeights>());
  Arithmetic a;
  peers[0]->send(wire::Initialize{}, part(a.w, 0, 2048));
  peers[1]->send(wire::Initialize{}, part(a.w, 2048, 2256));
  for (auto& peer : peers) ASSERT_TRUE(peer->next<wire::Weights>());
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    const int phase = sequence % 2 == 1 ? 0 : 1;
    const auto g = gradient(a.w, 0, sequence, phase);
    wire::Push push{{0}, {1}, {sequence}, {sequence / 2}, {a.version[1]}, 8};
    push.phase = static_cast<std::uint32_t>(phase);
    for (std::size_t s = 0; s < 2; ++s)
      peers[s]->send(push, part(g, kParts[phase][s].begin, kParts[phase][s].end));
    for (auto& peer : peers) ASSERT_TRUE(peer->next<wire::Weights>()) << sequence;
    a.update(phase, g);
  }
  for (auto& peer : peers) peer->send(wire::Leave{});
  expect(cluster, a);
}

// A connection to this server is cut once, after so many messages of the client.
client::Connector cut_connector(LoopbackCluster& cluster, const std::string& server, std::uint64_t messages,
                                const std::shared_ptr<std::atomic<std::uint64_t>>& cuts) {
  return [&cluster, server, messages, cuts](
             transport::EventLoop& loop,
             const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
    auto inner = cluster.network().connect(loop, address);
    if (!inner || address != server || *cuts > 0) return inner;
    transport::faulty::Faults faults;
    faults.cut_after = messages;
    faults.count = cuts;
    return transport::faulty::wrap(loop, std::move(*inner), faults);
  };
}

// Both sides repeat what they have to, in the middle of a step, too.
TEST(PushesOfPhases, AreRepeatedAfterAReconnect) {
  for (const auto* server : {"0", "1"}) {
    for (std::uint64_t cut = 3; cut <= 12; ++cut) {
      SCOPED_TRACE(std::string("server ") + server + " after " + std::to_string(cut));
      auto options = options_of("sync", 1, 2);
      options.members.reconnect = testing::kTestTimeout;
      LoopbackCluster cluster(false, options);
      const auto cuts = std::make_shared<std::atomic<std::uint64_t>>(0);
      Worker worker(cluster, 0, d_then_g(), cut_connector(cluster, server, cut, cuts));
      worker.begin();
      worker.train(6);
      worker.leave();
      EXPECT_EQ(*cuts, 1u);
      Arithmetic a;
      for (std::uint64_t step = 0; step < 6; ++step) {
        for (const int phase : {0, 1}) a.update(phase, gradient(a.w, 0, step, phase));
      }
      expect(cluster, a);
      if (HasFailure()) return;
    }
  }
}

// ---- checkpoints ----

std::vector<float> trained(const server::ServerOptions& options, std::uint64_t steps) {
  LoopbackCluster cluster(true, options);
  auto workers = joined(cluster, options.job.workers);
  on_all(workers, [&](Worker& worker) {
    worker.train(steps);
    worker.leave();
  });
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  return cluster.weights();
}

TEST(PhasesInCheckpoints, ResumeWithTheSameBits) {
  const TemporaryFolder folder;
  auto first = options_of("sync", 2, 2);
  first.checkpoints = {folder.path(), 2, {}, 100};
  (void)trained(first, 4);
  auto second = options_of("sync", 2, 2);
  const auto from = checkpoint::folder_of(folder.path(), {4});
  second.resume = checkpoint::Found{from, checkpoint::read_manifest(from)};
  const auto& manifest = second.resume->manifest;
  EXPECT_EQ(manifest.phases, d_then_g());
  EXPECT_EQ(manifest.optimizer, "default=sgd,d.*=adam");
  EXPECT_THAT(manifest.state, ElementsAre("momentum_buffer", "exp_avg", "exp_avg_sq"));
  EXPECT_THAT(manifest.groups,
              ElementsAre(checkpoint::GroupVersion{"phase generator, optimizer default", {4}},
                          checkpoint::GroupVersion{"phase discriminator, optimizer d.*", {4}}))
      << "between steps no group is ahead";
  EXPECT_EQ(trained(second, 3), trained(options_of("sync", 2, 2), 7));
}

TEST(PhasesInCheckpoints, EndBetweenStepsAtAStopRequest) {
  const TemporaryFolder folder;
  auto options = options_of("sync", 1, 1);
  options.checkpoints = {folder.path(), 1'000'000, {}, 100};
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  worker.train(2);
  EXPECT_FALSE(worker.push().stop);
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  (*observer)->stop("enough");
  ASSERT_TRUE((*observer)->status()) << "after the request";
  observer->reset();
  const auto last = worker.push();
  EXPECT_TRUE(last.stop);
  EXPECT_EQ(last.version.value, 3u);
  worker.leave();
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  const auto manifest = checkpoint::read_manifest(checkpoint::folder_of(folder.path(), {3}));
  for (const auto& group : manifest.groups) EXPECT_EQ(group.version.value, 3u) << group.group;
}

// ---- workers that differ ----

std::string refusal(LoopbackCluster& cluster, std::uint32_t rank, const std::vector<StepPhase>& phases) {
  const auto client = client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(),
                                                 four_tensors(), std::vector<float>(four_tensors().size()),
                                                 {.buffers = {}, .data = {}, .phases = phases});
  return client ? "" : client.status().message();
}

TEST(PhasesOfAJob, AreTheSameForAllWorkers) {
  LoopbackCluster cluster(true, options_of("sync", 2, 2));
  EXPECT_THAT(refusal(cluster, 0, {{"d", {"d.*"}}, {"g", {"g.w*"}}}),
              HasSubstr("tensor g.bias is in no phase of a step"));
  Worker first(cluster, 0);
  EXPECT_THAT(refusal(cluster, 1, {}), HasSubstr("2 phases of a step here and 0 there"));
  EXPECT_THAT(refusal(cluster, 1, {{"discriminator", {"d.*"}}, {"generator", {"*"}}}),
              HasSubstr("phase 1 of a step is generator (g.*) here and generator (*) there"));
  Worker second(cluster, 1);
  second.leave();
  first.begin();
  first.train(1);
  first.leave();
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
}

TEST(PhasesOfAJob, ArriveInOrder) {
  auto options = options_of("sync", 1, 1);
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  client::StepReport report{.samples = 8};
  report.phase = 1;
  const auto update = worker.client().push_pull(report);
  ASSERT_FALSE(update);
  EXPECT_THAT(update.status().message(), HasSubstr("a push of phase 1 where phase 0 is due"));
}

TEST(PhasesOfLocalSteps, AreOnePushOfAllTensors) {
  auto options = options_of("local-sgd:2", 1, 1);
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  ASSERT_EQ(worker.client().local_optimizer().entries.size(), 2u);
  EXPECT_EQ(worker.client().local_optimizer().entries[1].glob, "d.*");
  EXPECT_EQ(worker.client().local_optimizer().entries[1].name, "adam");
  for (std::uint64_t round = 1; round <= 2; ++round) {
    std::ranges::fill(worker.client().gradients(), static_cast<float>(round));
    const auto update = worker.client().push_pull({.samples = 8, .steps = 2});
    ASSERT_TRUE(update) << update.status().message();
    EXPECT_EQ(update->version.value, round);
    for (const auto w : worker.client().weights()) ASSERT_EQ(w, static_cast<float>(round));
  }
  worker.leave();
}

}  // namespace
}  // namespace capstan
