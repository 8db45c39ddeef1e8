#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "capstan/cluster/channel.h"
#include "capstan/cluster/pause_detector.h"
#include "capstan/transport/event_loop.h"

namespace spdlog {
class logger;
}

namespace capstan::server {

// "worker 2", "observer 0", "server 1".
std::string describe(const wire::Member& member);

// One connection to a server; bound to a member of the job after Join. Owned by the table.
class Peer final : private cluster::Channel::Events {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_join(Peer& peer, const wire::Join& join) = 0;
    virtual transport::Placement on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) = 0;
    virtual void on_message(Peer& peer, cluster::Arrival arrival) = 0;
    virtual void on_end(Peer& peer, Status why) = 0;
  };

  Peer(std::unique_ptr<transport::Connection> connection, const cluster::Token& token, TimePoint now,
       Events& events);

  cluster::Channel& channel() { return channel_; }
  const std::optional<wire::Member>& member() const { return member_; }
  Incarnation incarnation() const { return incarnation_; }  // of the member
  void set_member(const wire::Member& member, Incarnation incarnation) {
    member_ = member;
    incarnation_ = incarnation;
  }
  TimePoint opened_at() const { return opened_at_; }

 private:
  void on_trusted(cluster::Channel&) override {}
  transport::Placement on_payload(cluster::Channel&, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(cluster::Channel&, cluster::Arrival arrival) override;
  void on_end(cluster::Channel&, Status why) override { events_.on_end(*this, std::move(why)); }

  Events& events_;
  const TimePoint opened_at_;
  std::optional<wire::Member> member_;
  Incarnation incarnation_;
  cluster::Channel channel_;  // last: its constructor calls back
};

// The members connected to this server, and the workers whose connection is broken. Bounds the number of
// peers that have not joined. Owned by the server's loop; not thread-safe.
class MemberTable final : private Peer::Events {
 public:
  struct Options {
    cluster::Token token;
    Duration handshake = std::chrono::seconds(5);          // timeout from connect to Join
    Duration silence = std::chrono::milliseconds(1500);    // a member that is silent for this long is lost
    Duration observer_silence = std::chrono::seconds(60);  // the same for observers, which delay no update
    Duration reconnect = std::chrono::milliseconds(1000);  // a worker may reconnect within this time
  };

  // Called only for peers that have proved the token; on_payload and on_message only for members.
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_join(Peer& peer, const wire::Join& join) = 0;
    virtual transport::Placement on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) = 0;
    virtual void on_message(Peer& peer, cluster::Arrival arrival) = 0;
    // Final. A lost worker stays in the table until forget().
    virtual void on_lost(const wire::Member& member, Incarnation incarnation, const Status& why) = 0;
  };

  MemberTable(transport::EventLoop& loop, Options options, std::shared_ptr<spdlog::logger> log,
              Events& events);
  ~MemberTable() override;

  void accept(std::unique_ptr<transport::Connection> connection);

  // Binds the peer to a member; an earlier connection of the same member is closed.
  void bind(Peer& peer, const wire::Member& member, Incarnation incarnation);
  // Confirms a worker's Leave. The worker stays in the table as leaving until forget().
  void dismiss(Peer& peer);
  // Removes a worker's incarnation and ends its connection; a lost worker receives the reason.
  void forget(std::uint32_t rank, Incarnation incarnation, bool lost);

  // Ends all connections; after that they no longer read or write any memory.
  void close();

  Peer* find(const wire::Member& member);                           // null while its connection is broken
  Peer* find(const wire::Member& member, Incarnation incarnation);  // null also if another one is connected
  void send(const wire::Member& member, const wire::Message& message);
  void broadcast(wire::Role role, const wire::Message& message);
  bool has(wire::Role role) const;                                   // at least one is connected
  std::optional<Incarnation> incarnation(std::uint32_t rank) const;  // of a worker in the table
  // Workers in the table that may be lost soon: their connection is broken, or heartbeats are missing.
  std::vector<std::uint32_t> doubtful() const;
  bool takes_part(const wire::Member& member) const;  // false for a worker that has left

  // Called once per kTick: checks silence, gives up broken connections, sends heartbeats.
  static constexpr auto kTick = std::chrono::milliseconds(100);
  void tick();

 private:
  // kConnected ⇄ kBroken → kLost; kConnected → kLost; kConnected → kLeaving. The last two wait for forget().
  enum class WorkerState { kConnected, kBroken, kLost, kLeaving };
  struct Worker {
    Incarnation incarnation;
    WorkerState state = WorkerState::kConnected;
    TimePoint broken_at = {};
  };

  void on_join(Peer& peer, const wire::Join& join) override { events_.on_join(peer, join); }
  transport::Placement on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) override;
  void on_message(Peer& peer, cluster::Arrival arrival) override;
  void on_end(Peer& peer, Status why) override;

  void bound_unjoined();
  void close(Peer& peer);
  // Soon, not now: an ended peer's own callback may be running.
  void destroy_ended_soon();
  // Time before `running_since`, the end of this server's last pause, does not count.
  void check_silence(TimePoint now, TimePoint running_since);
  void give_up_broken(TimePoint now, TimePoint running_since);
  void lose_worker(std::uint32_t rank, const Status& why);

  transport::EventLoop& loop_;
  const Options options_;
  const std::shared_ptr<spdlog::logger> log_;
  Events& events_;
  std::list<std::unique_ptr<Peer>> unjoined_;  // in the order of connecting
  std::list<std::unique_ptr<Peer>> joined_;
  std::optional<transport::EventLoop::TimerId> destroying_;
  std::map<wire::Member, Peer*> connected_;  // members
  std::map<std::uint32_t, Worker> workers_;  // by rank
  cluster::PauseDetector pauses_;
  std::uint64_t ticks_ = 0;
};

}  // namespace capstan::server
