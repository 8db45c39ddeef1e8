#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/server/buffer_aggregator.h"
#include "capstan/server/checkpoint_coordinator.h"
#include "capstan/server/coordinator.h"
#include "capstan/server/role.h"

namespace capstan::server {

// What the workers of a job train. A server only passes it on.
struct JobDescription {
  std::string text;  // for every member that joins; empty: they know by other means
  // How the text that a member brings contradicts it; empty where it does not.
  std::function<std::string(const std::string& members)> contradictions;
};

struct LeaderOptions {
  Coordinator::Options job;
  optimizer::Options optimizer;
  optimizer::Schedule schedule;
  Duration join_timeout = std::chrono::seconds(120);  // the job starts without workers that come later
  checkpoint::CheckpointOptions checkpoints;
  std::optional<checkpoint::Found> resume;  // what to begin from
  JobDescription description;
};

// The first server of a job: shows the coordinator what happens, carries out its actions here and on every
// follower, and has checkpoints made. Owned by the server's loop; not thread-safe.
class Leader final : public Role {
 public:
  // Throws UserError for options that make no sense, and for a checkpoint that does not fit them.
  Leader(const RoleContext& context, LeaderOptions options);

  Result<wire::Member> admit(const wire::Join& join) override;
  void joined(const wire::Member& member, bool is_new) override;
  void initialized() override;
  void pushed(const wire::Push& push) override;
  transport::Placement place(const wire::Member& member, const wire::Message& message,
                             std::size_t bytes) override;
  Status take(const wire::Member& member, const wire::Message& message) override;
  void left(std::uint32_t rank, Incarnation incarnation) override { gone(rank, incarnation, false); }
  void lost(const wire::Member& member, Incarnation incarnation, const Status& why) override;
  void tick() override;
  void stop() override;
  void dismiss_workers() override;
  void ended(Outcome outcome) override;
  wire::StatusReport status() const override;

 private:
  // Messages by the role of their sender; false for one that is not taken.
  bool take_from_worker(WorkerId worker, const wire::Message& message);
  bool take_from_observer(const wire::Member& member, const wire::Message& message);
  bool take_from_server(ServerId server, const wire::Message& message);

  void run(const Actions& actions);
  void carry_out(const Order& order);
  void deliver(const wire::DeliverOrder& order);
  void send_initial_buffers(WorkerId worker);
  void begin_checkpoint();
  void gone(std::uint32_t rank, Incarnation incarnation, bool lost);
  void check_end();
  void checkpoint_done();

  // leader_start.cpp: what the job begins with.
  JobTerms make_terms() const;
  void load_checkpoint(const checkpoint::Found& from);
  Status check_data(const wire::Join& join) const;
  checkpoint::Manifest manifest() const;

  const RoleContext context_;
  const LeaderOptions options_;
  Coordinator coordinator_;
  BufferAggregator buffers_;
  std::optional<CheckpointCoordinator> checkpoints_;             // where there are any
  std::optional<wire::DataSource> data_;                         // what all workers train on
  std::map<WorkerId, std::deque<std::vector<float>>> arriving_;  // payloads of buffers, by worker
  std::set<WorkerId> greeted_;                                   // have the buffers to begin with
  bool stopped_ = false;  // by request, before the workers were done
  const TimePoint opened_at_;
  TimePoint started_at_;
};

}  // namespace capstan::server
