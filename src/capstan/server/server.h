#pragma once

#include <memory>
#include <optional>
#include <span>

#include "capstan/server/follower.h"
#include "capstan/server/leader.h"

namespace capstan::server {

struct ServerOptions {
  Coordinator::Options job;                  // the leader's; followers receive theirs from it
  cluster::Link::Connect connect_to_leader;  // none: this server is the leader
  optimizer::Spec optimizer;
  optimizer::Schedule schedule;
  unsigned threads = 1;
  std::size_t inline_elements = ShardExecutor::kInlineElements;  // shard_executor.h
  MemberTable::Options members;
  Duration join_timeout = std::chrono::seconds(120);  // then the job starts without the missing workers
  // Leader only:
  checkpoint::CheckpointOptions checkpoints;
  std::optional<checkpoint::Found> resume;
  JobDescription description;
  UpdateObserver* observer = nullptr;  // must outlive the server
};

// One parameter server: a range of the weights, its members, and a role, leader or follower. Pass connections
// from any listeners to accept(), and run the loop until outcome() is not kRunning. Routes events to its
// parts. Owned by the loop's thread; not thread-safe.
class Server final : private MemberTable::Events {
 public:
  using Outcome = server::Outcome;

  // Throws UserError for invalid options, and for a checkpoint that does not match them.
  Server(transport::EventLoop& loop, const ServerOptions& options, std::shared_ptr<spdlog::logger> log);
  ~Server() override;

  void accept(std::unique_ptr<transport::Connection> connection) { members_.accept(std::move(connection)); }

  // Not kRunning: the job has ended and no observer is connected, so the loop may end.
  Outcome outcome() const { return lifecycle_.outcome(); }
  // The leader's is complete; a follower's has only the figures of its own process.
  wire::StatusReport status() const;
  const FlatLayout& layout() const { return shard_.layout(); }
  Range range() const { return shard_.range(); }
  std::span<const float> weights() const { return shard_.weights(); }  // empty before they are initialized
  // Ends the job at the next step, as an observer's StopRequest does.
  void stop() { role_->stop(); }
  // Ends the job with the current version, when a worker takes too long for its step.
  void dismiss_workers() { role_->dismiss_workers(); }

 private:
  void on_join(Peer& peer, const wire::Join& join) override;
  transport::Placement on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) override;
  void on_message(Peer& peer, cluster::Arrival arrival) override;
  void on_lost(const wire::Member& member, Incarnation incarnation, const Status& why) override;

  Result<transport::Placement> place(const wire::Member& member, const wire::Message& message,
                                     std::size_t bytes);
  Status take(const wire::Member& member, cluster::Arrival& arrival);
  void refuse(Peer& peer, const Status& why);
  Status take_initial(WorkerId worker, std::size_t payload_bytes);
  void take_leave(Peer& peer, const wire::Leave& leave);
  void tick();

  transport::EventLoop& loop_;
  const std::shared_ptr<spdlog::logger> log_;
  MemberTable members_;
  ShardServer shard_;
  PartWriter writer_;
  Lifecycle lifecycle_;
  std::unique_ptr<Role> role_;
  std::optional<transport::EventLoop::TimerId> timer_;
};

}  // namespace capstan::server
