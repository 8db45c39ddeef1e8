#pragma once

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include <spdlog/logger.h>

#include "capstan/base/flat_layout.h"
#include "capstan/checkpoint/checkpointer.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/optimizer/optimizer.h"
#include "capstan/server/buffer_aggregator.h"
#include "capstan/server/coordinator.h"
#include "capstan/server/leader_link.h"
#include "capstan/server/session.h"
#include "capstan/server/shard_executor.h"
#include "capstan/server/worker_arena.h"

namespace capstan::server {

struct ServerOptions {
  Coordinator::Options job;  // strategy, workers, servers, max_steps; followers take the leader's word
  bool leads = true;         // a follower needs follow()
  optimizer::Options optimizer;
  optimizer::Schedule schedule;
  unsigned threads = 1;
  std::size_t inline_elements = ShardExecutor::kInlineElements;  // passes up to this size need no thread
  cluster::Token token;
  Duration handshake = std::chrono::seconds(5);          // from connecting to Join, or to the leader's answer
  Duration silence = std::chrono::milliseconds(1500);    // a member that says nothing for so long is lost
  Duration observer_silence = std::chrono::seconds(60);  // an observer holds nobody up, and may be busy
  Duration reconnect = std::chrono::milliseconds(1000);  // a broken connection may come back within this
  Duration join_timeout = std::chrono::seconds(120);     // workers that come later than this are left out
  checkpoint::CheckpointOptions checkpoints;             // of the leader, who tells the others
  std::optional<checkpoint::Found> resume;               // leader: what to begin from
};

// One parameter server: its share of the weights, the workers it talks to, and either the decisions (the
// first server) or a link to the server that makes them. Give it an EventLoop, connections from any
// listeners, and run the loop until done(). Owned by the loop's thread; not thread-safe.
class Server final : private SessionEvents, private LeaderLink::Events {
 public:
  enum class Outcome { kRunning, kFinished, kAllWorkersLost, kLeaderLost, kFollowerLost };

  // Throws UserError for options that make no sense, and for a checkpoint that does not fit them.
  Server(transport::EventLoop& loop, const ServerOptions& options, std::shared_ptr<spdlog::logger> log);
  ~Server() override;

  // A new client, from a listener.
  void accept(std::unique_ptr<transport::Connection> connection);
  // Followers only, once: how to reach the first server, which may still be starting.
  using Connect = std::function<Result<std::unique_ptr<transport::Connection>>()>;
  void follow(Connect connect);

  // Past kRunning the job is over and nobody watches any more: the loop may end.
  Outcome outcome() const { return outcome_; }
  // The leader's view; of a follower only what concerns its own process.
  wire::StatusReport status() const;
  const FlatLayout& layout() const { return layout_; }
  Range range() const { return range_; }
  std::span<const float> weights() const;  // once the job is finished; empty where none ever came
  // Ends the job at the next step, as an observer's StopRequest would.
  void stop();

 private:
  struct WorkerEntry {
    Session* session = nullptr;  // null while the connection is broken
    TimePoint broken_at;
    Incarnation incarnation;
    std::shared_ptr<WorkerArena> arena;
    Sequence staged;                         // newest push held here
    const Session* staged_on = nullptr;      // where it came; null after a broken connection
    std::vector<Sequence> settled;           // by group: newest push that was applied or dropped
    bool greeted = false;                    // has what it begins with
    std::deque<std::vector<float>> buffers;  // on their way in
    bool leaving = false;

    // The push that is held here waits for an order.
    bool in_use() const {
      return std::ranges::any_of(settled, [&](Sequence s) { return s < staged; });
    }
  };

  void on_join(Session& session, const wire::Join& join) override;
  transport::Placement on_payload(Session& session, const wire::Message& message, std::size_t bytes) override;
  void on_message(Session& session, Arrival arrival) override;
  void on_end(Session& session, Status why) override;
  void on_leader_order(const wire::Message& order) override;
  void on_leader_joined(const wire::Joined& joined) override;
  void on_leader_lost(Status why) override;

  // Each takes one kind of message; a failure ends the session.
  Status take(Session& session, const wire::Push& push, std::size_t payload_bytes);
  Status take(Session& session, const wire::Share& share, std::optional<transport::Segment> segment);
  Status take(Session& session, const wire::Initialize&, std::size_t payload_bytes);
  Status take_as_leader(Session& session, const wire::Message& message);
  void take_leave(Session& session);
  void dismiss(Session& session);  // a worker that is done
  Status check_push(const Session& session, const wire::Push& push) const;

  Status admit(const wire::Join& join, wire::Member& member);
  void welcome_worker(Session& session, const wire::Join& join, const wire::Joined& joined);
  void member_gone(const wire::Member& member, Incarnation incarnation, bool lost);
  void forget_worker(std::uint32_t rank, Incarnation incarnation, bool lost);
  WorkerEntry* entry_of(const wire::Member& member);  // null for who is no worker, or has left
  std::vector<Session*> sessions_of(wire::Role role);
  Session* session_of(const wire::Member& member);

  void issue(const Order& order);  // leader: here and to every follower
  void carry_out(const wire::ApplyOrder& order);
  void carry_out(const wire::AccumulateOrder& order);
  void carry_out(const wire::DropOrder& order);
  void carry_out(const wire::DeliverOrder& order);
  void deliver_to_worker(WorkerEntry& worker, const wire::Weights& reply);
  void deliver_to_observer(const wire::Member& member, const wire::Weights& reply);
  void make_shard();
  void know_strategy(const std::string& strategy);
  std::uint32_t groups() const { return static_cast<std::uint32_t>(spec_.groups.size()) + 1; }
  WorkerEntry* holder_of(WorkerId worker, Sequence sequence);  // null where the push is not here
  void settle(WorkerId worker, Sequence sequence, std::uint32_t group);

  // Checkpoints: server_checkpoints.cpp.
  void begin_from(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);
  void cannot_begin(const std::string& error);  // follower: from the leader's checkpoint
  Status check_data(const wire::Join& join) const;
  void agree_on_data(const wire::Join& join);  // of a worker that has been taken in
  checkpoint::Manifest manifest() const;
  std::vector<std::string> state_names() const;  // of the arrays beside the weights
  void note_update(Version version);             // leader: is a checkpoint due?
  void plan_checkpoint();
  void order_checkpoint();
  void hand_over_buffers();
  std::unique_ptr<checkpoint::Background> make_background();
  void carry_out(const wire::CheckpointOrder& order);
  std::shared_ptr<checkpoint::Snapshot> snapshot_memory() const;  // null where there is none
  void written_part(const wire::CheckpointWritten& written);      // of this server
  void checkpoint_done();
  void mark_end(Outcome outcome);
  void take_buffers(Session& session);
  void greet(WorkerEntry& worker);
  void tick();
  void check_silence(TimePoint now);
  void check_end();
  void end(Outcome outcome);
  void end_when_idle(Outcome outcome);  // once the last update is done
  void seek_leader();

  transport::EventLoop& loop_;
  const ServerOptions options_;
  const std::shared_ptr<spdlog::logger> log_;
  std::unique_ptr<const optimizer::Optimizer> optimizer_;  // of this job's strategy, once that is known
  std::optional<Coordinator> coordinator_;                 // leader only
  std::unique_ptr<LeaderLink> leader_;                     // follower only
  Connect connect_to_leader_;

  FlatLayout layout_;
  Range range_;
  ServerId index_;
  std::uint32_t servers_ = 1, workers_ = 1;
  bool joined_ = false;  // a follower has found its leader
  strategy::StrategySpec spec_;
  bool uses_local_steps_ = false;  // workers train by themselves
  bool in_place_ = false;
  bool initialized_ = false;
  bool has_accumulated_ = false;  // there is a sum
  transport::Segment weights_;
  std::unique_ptr<ShardExecutor> executor_;

  std::vector<DataSegment> segments_;  // the way through the data before this job
  Version start_;                      // with which it began
  std::optional<wire::DataSource> data_;
  BufferAggregator buffers_;                                // leader only
  std::unique_ptr<checkpoint::Background> background_;      // writes; made when first needed
  std::unique_ptr<checkpoint::Checkpointer> checkpointer_;  // leader only, where there are checkpoints
  bool checkpoint_due_ = false;
  std::uint64_t buffers_asked_ = 0;  // times, for checkpoints
  std::optional<std::vector<float>> checkpoint_buffers_;
  std::vector<checkpoint::HighWaterMark>
      marks_;  // of the checkpoint this job began from, for the groups of now

  std::list<std::unique_ptr<Session>> sessions_;
  std::map<std::uint32_t, WorkerEntry> entries_;  // workers by rank
  std::optional<transport::EventLoop::TimerId> timer_, retry_;
  std::uint64_t ticks_ = 0;
  TimePoint opened_at_, last_tick_, started_at_, last_update_at_;
  Outcome outcome_ = Outcome::kRunning;
  std::optional<Outcome> coming_;  // when the executor is idle
};

}  // namespace capstan::server
