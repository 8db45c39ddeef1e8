#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/server/buffer_aggregator.h"
#include "capstan/server/checkpoint_coordinator.h"
#include "capstan/server/coordinator.h"
#include "capstan/server/role.h"

namespace capstan::server {

// The job's configuration as workers need it. The leader passes it on without reading it.
struct JobDescription {
  std::string text;  // sent to every member that joins; empty: members are configured by other means
  // Compares a member's own text; returns the contradictions, or an empty string.
  std::function<std::string(const std::string& members)> contradictions;
};

struct LeaderOptions {
  Coordinator::Options job;
  optimizer::Spec optimizer;
  optimizer::Schedule schedule;
  Duration join_timeout = std::chrono::seconds(120);  // then the job starts without the missing workers
  checkpoint::CheckpointOptions checkpoints;
  std::optional<checkpoint::Found> resume;
  JobDescription description;
};

// The first server of a job: passes events to the coordinator, carries out its actions here and on every
// follower, and starts checkpoints. Owned by the server's loop; not thread-safe.
class Leader final : public Role {
 public:
  // Throws UserError for invalid options, and for a checkpoint that does not match them.
  Leader(const RoleContext& context, LeaderOptions options);

  Result<wire::Member> admit(const wire::Join& join) override;
  void joined(const wire::Member& member, bool is_new) override;
  bool expects_initial(WorkerId worker) const override { return coordinator_.initializer() == worker; }
  void initialized() override;
  void pushed(const wire::Push& push) override;
  transport::Placement place(const wire::Member& member, const wire::Message& message,
                             std::size_t bytes) override;
  Status take(const wire::Member& member, const wire::Message& message) override;
  void left(std::uint32_t rank, Incarnation incarnation, const wire::Leave& leave) override;
  void lost(const wire::Member& member, Incarnation incarnation, const Status& why) override;
  void tick() override;
  void stop() override;
  void dismiss_workers() override;
  void ended(Outcome outcome) override;
  wire::StatusReport status() const override;

 private:
  // Messages by the role of their sender; false for an unexpected one.
  bool take_from_worker(WorkerId worker, const wire::Message& message);
  bool take_from_observer(const wire::Member& member, const wire::Message& message);
  bool take_from_server(ServerId server, const wire::Message& message);

  void run(Actions actions);
  void pass_on_pulls();
  void carry_out(const Order& order);
  void deliver(const wire::DeliverOrder& order);
  void send_initial_buffers(WorkerId worker);
  void begin_checkpoint();
  void member_ended(std::uint32_t rank, Incarnation incarnation, bool lost);
  void check_end();
  void checkpoint_done();

  // leader_start.cpp: the start of the job.
  JobTerms make_terms() const;
  void set_groups();
  void load_checkpoint(const checkpoint::Found& from);
  Status check_data(const wire::Join& join) const;
  void announce_model();
  checkpoint::Manifest manifest() const;

  const RoleContext context_;
  const LeaderOptions options_;
  Coordinator coordinator_;
  BufferAggregator buffers_;
  std::optional<CheckpointCoordinator> checkpoints_;  // if the run writes any
  std::optional<wire::DataSource> data_;              // the same for all workers
  // Payloads of buffers, by worker. Not initialized: memory is used as bytes arrive, not as announced.
  std::map<WorkerId, std::deque<std::unique_ptr<float[]>>> arriving_;
  std::map<wire::Member, wire::Pull> pulls_;  // of observers, until their previous answer is sent
  std::set<WorkerId> have_buffers_;           // workers that got their initial buffers
  bool stopped_ = false;                      // by request, before the workers finished
  std::vector<std::uint64_t> push_bytes_;     // by phase: of one push, over all servers, without rows
  TimePoint start_by_;                        // then the job starts without the missing workers
  TimePoint started_at_;
};

}  // namespace capstan::server
