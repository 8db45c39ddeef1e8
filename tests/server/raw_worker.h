#pragma once

#include "server/play.h"
#include "server/raw_peer.h"

// A worker of the small model in play.h, spoken by hand.
namespace capstan::testing::play {

inline wire::Join worker_join(std::optional<std::uint32_t> rank, std::uint64_t incarnation = 1) {
  return {wire::Role::kWorker, rank, {incarnation}, wire::to_wire(small_layout())};
}

// Patient enough for peers without heartbeats.
inline server::ServerOptions patient(std::uint32_t workers, std::uint32_t servers = 1,
                                     const std::string& strategy = "sync") {
  auto options = job(workers, servers, strategy);
  options.members.silence = std::chrono::seconds(30);
  options.members.reconnect = std::chrono::milliseconds(100);
  return options;
}

// A raw worker that is asked for the weights and brings them.
inline void begin_job(RawPeer& peer) {
  peer.send(wire::Pull{});
  EXPECT_TRUE(peer.next<wire::SendWeights>());
  peer.send(wire::Initialize{}, initial_weights(small_layout()));
}

// A member of a server that may say "not yet": tries until it is taken in, for 30 s.
inline std::unique_ptr<RawPeer> join_in_time(LoopbackCluster& cluster, const std::string& address,
                                             const wire::Join& join) {
  const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
  while (SteadyClock::now() < give_up) {
    auto peer = std::make_unique<RawPeer>(cluster.network(), address);
    if (peer->join(cluster.token(), join)) return peer;
  }
  return nullptr;
}

}  // namespace capstan::testing::play
