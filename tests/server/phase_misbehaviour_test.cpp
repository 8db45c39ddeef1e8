// Phases of a step that are wrong, in Joins and in Pushes. The server refuses them with one reason, answers
// its other members meanwhile, and the job continues with the other workers.

#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/phase_play.h"
#include "server/raw_peer.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using testing::LoopbackCluster;
using testing::RawPeer;
using namespace testing::phase_play;
using Phases = std::vector<wire::Phase>;

// ---- joins ----

std::string refusal(LoopbackCluster& cluster, const std::string& server, const wire::Join& join) {
  RawPeer peer(cluster.network(), server);
  EXPECT_TRUE(peer.shake_hands(cluster.token()));
  peer.send(join);
  return peer.wait_closed().value_or("not refused");
}

std::string times(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

Phases a_thousand_phases() {
  Phases phases;
  for (int i = 0; i < 1000; ++i) phases.push_back({"p" + std::to_string(i), {"*"}});
  return phases;
}

struct Wrong {
  Phases phases;
  std::string reason;
};

std::vector<Wrong> wrong_phases() {
  const std::vector<std::string> many(10'000, "d.*");
  const std::vector<std::string> stars(200, times(300, "*a") + "*b");
  return {
      {{{"d", {"d.*", "g.*"}}, {"g", {}}},
       "phase g of a step is left without tensors of this model: the phases are d (d.*, g.*), g ()"},
      {{{"d", {"d.*"}}, {"d", {"g.*"}}}, "two phases of a step are named d: give each its own name"},
      {{{"", {"d.*"}}, {"g", {"g.*"}}}, "a phase of a step has no name: give each its own"},
      {a_thousand_phases(), "a step has 1000 phases; at most 64 are possible"},
      {{{"d", many}, {"g", {"g.*"}}}, "phase d has 10000 globs; at most 256 are possible"},
      {{{"d", {std::string(65'536, '*')}}, {"g", {"*"}}},
       "a glob of phase d is too long, or is not text of one line"},
      {{{std::string(65'536, 'd'), {"d.*"}}, {"g", {"*"}}},
       "the name of a phase is too long, or is not text of one line"},
      {{{"d", {"d.*\n"}}, {"g", {"*"}}}, "a glob of phase d is too long, or is not text of one line"},
      {{{"d\xff", {"d.*"}}, {"g", {"*"}}}, "the name of a phase is too long, or is not text of one line"},
      {{{"d", {"d.*", "g.*"}}, {"stars", stars}},
       "phase stars of a step is left without tensors of this model: the phases are d (d.*, g.*), stars (" +
           times(300, "*a").substr(0, 200 - 14 - 7) + "..."},
      {{{"d", {"d.*", "g.*"}}, {"x", {"x.*"}}},
       "phase x of a step is left without tensors of this model: the phases are d (d.*, g.*), x (x.*)"},
      {{{"d", {"d.*"}}, {"g", {"g.w*"}}},
       "tensor g.bias is in no phase of a step: the phases are d (d.*), g (g.w*)"},
      {{{"d", {"d.*", "g.*"}}, {"g", {"g.*"}}},
       "phase g of a step is left without tensors of this model: the phases are d (d.*, g.*), g (g.*)"},
  };
}

void expect_responsive(client::Observer& observer) {
  const auto status = observer.status();
  EXPECT_TRUE(status) << status.status().message();
}

// A job of these workers, whose result is the arithmetic's.
void expect_job_succeeds(LoopbackCluster& cluster) {
  auto workers = joined(cluster, 2);
  on_all(workers, [](Worker& worker) {
    worker.train(3);
    worker.leave();
  });
  Arithmetic a;
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (const int phase : {0, 1}) {
      auto mean = gradient(a.w, 0, step, phase);
      const auto other = gradient(a.w, 1, step, phase);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = (mean[i] + other[i]) / 2;
      a.update(phase, mean);
    }
  }
  expect(cluster, a);
}

TEST(WrongPhases, AreRefusedBeforeThereIsAModel) {
  LoopbackCluster cluster(true, options_of("sync", 2, 2));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  for (const auto& wrong : wrong_phases()) {
    EXPECT_EQ(refusal(cluster, "0", worker_join(0, wrong.phases)), wrong.reason);
    expect_responsive(**observer);
  }
  observer->reset();
  expect_job_succeeds(cluster);
}

// Bounds come first, then the first difference; its text is bounded, too.
TEST(WrongPhases, AreRefusedBesideAWorkerWithOthers) {
  for (const auto* server : {"0", "1"}) {
    LoopbackCluster cluster(false, options_of("sync", 3, 2));
    auto workers = joined_without_pull(cluster, 2);
    for (const auto& wrong : wrong_phases()) {
      const auto reason = refusal(cluster, server, worker_join(2, wrong.phases));
      EXPECT_TRUE(reason == wrong.reason || reason.find("the worker's model differs") == 0) << reason;
      EXPECT_LT(reason.size(), 700u);
    }
    EXPECT_EQ(
        refusal(cluster, server, worker_join(2, {{"generator", {"g.*"}}, {"discriminator", {"d.*"}}})),
        "the worker's model differs from the server's (here): phase 0 of a step is discriminator (d.*) here "
        "and generator (g.*) there");
    EXPECT_EQ(refusal(cluster, server, worker_join(2, {})),
              "the worker's model differs from the server's (here): 2 phases of a step here and 0 there");
    for (auto& worker : workers) worker->leave();
  }
}

// Each glob and each name is allowed, but all globs with all names would take minutes.
TEST(WrongPhases, ThatTakeTooLongToMatchAreRefused) {
  LoopbackCluster cluster(true, options_of("sync", 2, 2));
  auto join = worker_join(0, {});
  std::size_t names = 0;
  for (int i = 0; i < 500; ++i) join.layout.push_back({std::to_string(i) + std::string(900, 'a'), {1}});
  for (const auto& tensor : join.layout) names += tensor.name.size() + 1;
  const auto with_globs = [&](std::size_t count) {
    join.phases = {{"d", {}}, {"g", {"*"}}};
    join.phases[0].globs.assign(count, "*" + std::string(449, 'a') + "b");  // 452 with its end
    return refusal(cluster, "0", join);
  };
  const std::size_t most = (std::size_t{1} << 28) / names;
  EXPECT_EQ(
      with_globs(256),
      fmt::format("the phases have {} bytes of globs, which takes too long for {} bytes of tensor names; "
                  "at most {} are possible",
                  256 * 452 + 2, names, most));
  EXPECT_THAT(with_globs((most - 2) / 452), HasSubstr("phase d of a step is left without tensors"));
  expect_job_succeeds(cluster);
}

// ---- pushes ----

// With one server the phases have elements 0 to 2240 and 1200 to 2256.
constexpr Range kParts[2] = {{0, 2240}, {1200, 2256}};

wire::Push push_of(std::uint64_t sequence, std::uint32_t phase) {
  wire::Push push{{1}, {1}, {sequence}, {sequence / 2}, {0}, 8};
  push.phase = phase;
  return push;
}

// One of two workers pushes the same gradient as the other in the first phases, then something wrong; the
// other finishes its steps without it.
class WrongPushes : public ::testing::Test {
 protected:
  void expect_refused(std::uint64_t correct, const wire::Push& push, std::size_t floats,
                      const std::string& reason) {
    LoopbackCluster cluster(false, options_of("sync", 2, 1));
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
    peer.send(wire::Pull{});
    ASSERT_TRUE(peer.next<wire::SendWeights>());
    Arithmetic a;
    peer.send(wire::Initialize{}, part(a.w, {0, a.w.size()}));
    std::thread other([&] {
      Worker honest(cluster, 0);
      honest.begin();
      honest.train(4);
      honest.leave();
    });
    EXPECT_TRUE(peer.next<wire::Weights>());
    for (std::uint64_t i = 0; i < 8; ++i) {
      const int phase = static_cast<int>(i % 2);
      const auto g = gradient(a.w, 0, i / 2, phase);
      if (i < correct) {
        peer.send(push_of(i + 1, static_cast<std::uint32_t>(phase)), part(g, kParts[phase]));
        EXPECT_TRUE(peer.next<wire::Weights>());
      }
      a.update(phase, g);
    }
    peer.send(push, std::vector<float>(floats, 1e9f));
    EXPECT_EQ(peer.wait_closed(), reason);
    other.join();
    expect(cluster, a);
    EXPECT_EQ(cluster.report().workers[1].state, wire::WorkerState::kLost);
    EXPECT_EQ(cluster.report().workers[1].pushes, correct);
  }
};

TEST_F(WrongPushes, OfAPhaseThatDoesNotExist) {
  expect_refused(0, push_of(1, 7), 2240, "a push of phase 7 where phase 0 is due");
  expect_refused(1, push_of(2, 0xffffffff), 1056, "a push of phase 4294967295 where phase 1 is due");
}
TEST_F(WrongPushes, OfAPhaseOutOfOrder) {
  expect_refused(0, push_of(1, 1), 1056, "a push of phase 1 where phase 0 is due");
  expect_refused(1, push_of(2, 0), 2240, "a push of phase 0 where phase 1 is due");
  expect_refused(2, push_of(3, 1), 1056, "a push of phase 1 where phase 0 is due");
}
TEST_F(WrongPushes, WithTheSizeOfAnotherPhase) {
  expect_refused(0, push_of(1, 0), 1056, "a push with a payload of 4224 bytes where phase 0 has 8960");
  expect_refused(1, push_of(2, 1), 2240, "a push with a payload of 8960 bytes where phase 1 has 4224");
  expect_refused(1, push_of(2, 1), 2256, "a push with a payload of 9024 bytes where phase 1 has 4224");
  expect_refused(1, push_of(2, 1), 0, "a push with a payload of 0 bytes where phase 1 has 4224");
}
TEST_F(WrongPushes, RepeatedAsAnotherPhaseOrSize) {
  expect_refused(1, push_of(1, 1), 2240, "a push of phase 1 where phase 0 is due");
  expect_refused(1, push_of(1, 0), 1056, "a push with a payload of 4224 bytes where phase 0 has 8960");
}

class OneWorker {
 public:
  OneWorker() : cluster_(false, options_of("async", 1, 1)), peer_(cluster_.network(), "0") {
    auto join = worker_join(0);
    EXPECT_TRUE(peer_.join(cluster_.token(), join));
    peer_.send(wire::Pull{});
    EXPECT_TRUE(peer_.next<wire::SendWeights>());
    peer_.send(wire::Initialize{}, part(start(), {0, start().size()}));
    EXPECT_TRUE(peer_.next<wire::Weights>());
  }
  void push(std::uint64_t sequence, const Vector& g, float loss = 0) {
    const auto phase = static_cast<std::uint32_t>((sequence - 1) % 2);
    auto push = push_of(sequence, phase);
    push.worker = {0};
    push.loss = loss;
    peer_.send(push, part(g, kParts[phase]));
  }
  bool is_answered() { return peer_.next<wire::Weights>().has_value(); }
  LoopbackCluster& leave() {
    peer_.send(wire::Leave{});
    return cluster_;
  }

 private:
  LoopbackCluster cluster_;
  RawPeer peer_;
};

TEST(RepeatedPushes, OfAPhaseCountOnce) {
  OneWorker worker;
  Arithmetic a;
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    const auto phase = static_cast<int>((sequence - 1) % 2);
    const auto g = gradient(a.w, 0, sequence, phase);
    worker.push(sequence, g);
    ASSERT_TRUE(worker.is_answered());
    for (std::uint64_t again = 1; again <= sequence; ++again) worker.push(again, Vector(g.size(), 1e9));
    a.update(phase, g);
  }
  expect(worker.leave(), a);
}

// Servers do not check values: what is not finite becomes part of the phase's weights, and of no others.
TEST(PushesThatAreNotFinite, ChangeTheirPhaseOnly) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    OneWorker worker;
    Arithmetic a;
    worker.push(1, Vector(a.w.size(), value), static_cast<float>(value));
    ASSERT_TRUE(worker.is_answered());
    const auto g = gradient(a.w, 0, 0, 1);
    worker.push(2, g, static_cast<float>(value));
    ASSERT_TRUE(worker.is_answered());
    a.update(1, g);
    auto& cluster = worker.leave();
    EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
    EXPECT_EQ(cluster.report().version.value, 1u);
    EXPECT_FALSE(std::isfinite(cluster.report().loss));
    const auto weights = cluster.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (phase_of(i) == 0) {
        ASSERT_FALSE(std::isfinite(weights[i])) << i;
      } else if (phase_of(i) == 1) {
        ASSERT_NEAR(weights[i], a.w[i], 1e-5) << i;
      }
    }
  }
}

}  // namespace
}  // namespace capstan
