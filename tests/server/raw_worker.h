#pragma once

#include "server/play.h"
#include "server/raw_peer.h"

// A worker of the small model in play.h that the test drives.
namespace capstan::testing::play {

inline wire::Join worker_join(std::optional<std::uint32_t> rank, std::uint64_t incarnation = 1) {
  return {wire::Role::kWorker, rank, {incarnation}, wire::to_wire(small_layout())};
}

// A broken connection is given up after a short time.
inline server::ServerOptions patient(std::uint32_t workers, std::uint32_t servers = 1,
                                     const std::string& strategy = "sync") {
  auto options = job(workers, servers, strategy);
  options.members.reconnect = std::chrono::milliseconds(100);
  return options;
}

// A raw worker that is asked for the weights and sends them.
inline void begin_job(RawPeer& peer) {
  peer.send(wire::Pull{});
  EXPECT_TRUE(peer.next<wire::SendWeights>());
  peer.send(wire::Initialize{}, initial_weights(small_layout()));
}

// Joins a server that may answer "not yet": tries until it is admitted. Null after kTestTimeout.
inline std::unique_ptr<RawPeer> join_in_time(LoopbackCluster& cluster, const std::string& address,
                                             const wire::Join& join) {
  std::unique_ptr<RawPeer> peer;
  const bool joined = eventually([&] {
    peer = std::make_unique<RawPeer>(cluster.network(), address);
    return peer->join(cluster.token(), join).has_value();
  });
  return joined ? std::move(peer) : nullptr;
}

// A worker of the small model on a cluster with a clock of its own; it copies what it pushes. Not
// thread-safe.
class ManualWorker {
 public:
  ManualWorker(FakeCluster& cluster, std::uint32_t rank, std::uint64_t incarnation = 1)
      : cluster_(cluster), rank_(rank), incarnation_(incarnation) {
    for (std::size_t server = 0; server < cluster.servers(); ++server) {
      peers_.push_back(std::make_unique<RawPeer>(cluster, std::to_string(server)));
      const auto joined = peers_.back()->join(cluster.token(), worker_join(rank, incarnation));
      EXPECT_TRUE(joined) << "server " << server;
      ranges_.push_back(joined ? Range{joined->begin, joined->end} : Range{});
    }
  }

  RawPeer& at(std::size_t server) { return *peers_[server]; }
  // True if the servers ask it for the initial weights.
  bool pull() {
    at(0).send(wire::Pull{});
    return at(0).next<wire::SendWeights>().has_value();
  }
  void initialize() {
    const auto w = initial_weights(small_layout());
    for (std::size_t s = 0; s < peers_.size(); ++s) at(s).send(wire::Initialize{}, part(w, s));
    cluster_.time().settle();
  }
  // The gradient of play.h at this step; the answer, if there is one yet.
  std::optional<wire::Weights> push(std::uint64_t step) {
    std::vector<float> g(small_layout().size());
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = gradient(rank_, step, i);
    const wire::Push push{{rank_}, {incarnation_}, {step + 1}, {step + 1}, version_, 32};
    for (std::size_t s = 0; s < peers_.size(); ++s) at(s).send(push, part(g, s));
    return answer();
  }
  std::optional<wire::Weights> answer() {
    const auto weights = at(0).next<wire::Weights>();
    if (weights) version_ = weights->version;
    return weights;
  }
  void leave() {
    for (auto& peer : peers_) peer->send(wire::Leave{});
    cluster_.time().settle();
  }

  // Time passes, and these workers send heartbeats.
  static void pass(FakeCluster& cluster, Duration time, std::initializer_list<ManualWorker*> alive) {
    for (const auto end = cluster.time().now() + time; cluster.time().now() < end;) {
      for (auto* worker : alive) {
        for (auto& peer : worker->peers_) peer->send(wire::Heartbeat{});
      }
      cluster.time().pass(std::chrono::milliseconds(100));
    }
  }

 private:
  std::vector<float> part(const std::vector<float>& whole, std::size_t server) const {
    const auto& range = ranges_[server];
    return {whole.begin() + static_cast<std::ptrdiff_t>(range.begin),
            whole.begin() + static_cast<std::ptrdiff_t>(range.end)};
  }

  FakeCluster& cluster_;
  const std::uint32_t rank_;
  const std::uint64_t incarnation_;
  Version version_;
  std::vector<std::unique_ptr<RawPeer>> peers_;
  std::vector<Range> ranges_;
};

}  // namespace capstan::testing::play
