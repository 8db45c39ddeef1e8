#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/server/loss_window.h"
#include "capstan/server/orders.h"
#include "capstan/server/worker_table.h"
#include "capstan/status.h"
#include "capstan/strategy/engine.h"

namespace capstan::server {

// Ask this worker to send the initial weights to every server.
struct AskInitialWeights {
  WorkerId worker;
  friend bool operator==(const AskInitialWeights&, const AskInitialWeights&) = default;
};
// The last action of an event that made an update: all its orders have been given.
struct UpdatesOrdered {};
using Action = std::variant<Order, AskInitialWeights, UpdatesOrdered>;
using Actions = std::vector<Action>;

// The leader's decisions: which workers take part, which pushes count, when weights are delivered. Pure:
// events and time in, actions out; no connection, memory, loop or thread. The caller carries out the actions
// of one event in order, and all of them before the next event. A push counts once every server holds it, so
// no shard uses a gradient that another lacks. Each parameter group has an engine that sees every event,
// except pushes of other phases; a worker is answered when every group of its push's phase has released it.
// The job's version, its limit and its report are those of group 0, whose updates end steps. Not thread-safe.
class Coordinator {
 public:
  struct Options {
    std::string strategy = "sync";  // strategy/strategy_spec.h
    std::uint32_t workers = 1;
    std::uint32_t servers = 1;
    std::uint64_t max_steps = 0;      // 0: no limit
    std::uint64_t loss_window = 100;  // updates over which the reported loss is the mean
  };

  // Throws UserError for a strategy that does not exist.
  explicit Coordinator(const Options& options);
  Coordinator(const Coordinator&) = delete;  // the engines refer to current_
  Coordinator& operator=(const Coordinator&) = delete;

  // The groups of the job's model, if there are several. Call before resume() and before any worker is ready.
  void set_groups(const ParameterGroups& groups);

  // Continues from a checkpoint's versions (one per group) and high-water marks. Call before any worker
  // joins.
  void resume(const std::vector<Version>& versions, std::vector<checkpoint::HighWaterMark> marks);

  // ---- events ----

  // A client asks to join. An observer that reconnects keeps its number; another process gets a new one.
  // `doubtful`: workers that may be lost soon (WorkerTable::admit).
  Result<wire::Member> admit(wire::Role role, std::optional<std::uint32_t> index, Incarnation incarnation,
                             std::span<const std::uint32_t> doubtful = {});
  Actions initialized(ServerId server, TimePoint now);  // that server has the initial weights
  Actions pushed(const wire::Push& push, TimePoint now);
  Actions staged(ServerId server, WorkerId worker, Incarnation incarnation, Sequence sequence, TimePoint now);
  Actions pull(const wire::Member& member, const wire::Pull& pull, TimePoint now);
  void progressed(WorkerId worker, const wire::Progress& progress);
  // Bytes of rows that a worker has pulled since its last push.
  void count_last_pull(WorkerId worker, std::uint64_t row_bytes);
  Actions member_ended(const wire::Member& member, bool lost, TimePoint now);
  Actions stop(TimePoint now);  // ends the job: no step begins, steps that have begun are finished
  Actions tick(TimePoint now);  // applies deadlines

  // Takes back the actions of an event that were carried out: the next event uses their memory again.
  void recycle(Actions actions);

  // ---- state ----

  Version version() const { return engines_[0].version(); }
  std::vector<Version> versions() const;  // by group
  bool started() const { return engines_[0].started(); }
  bool finished() const { return workers_.all_ended(); }  // every worker has left or is lost
  bool all_lost() const { return workers_.count(WorkerPhase::kLost) == workers_.size(); }
  // Workers that the start of the job waits for: not joined, or not ready. Empty after the start.
  std::vector<std::uint32_t> missing() const;
  Incarnation incarnation(std::uint32_t worker) const { return workers_[{worker}].incarnation; }
  // The worker that was asked for the initial weights last, and takes part.
  std::optional<WorkerId> initializer() const { return initializer_; }
  // Per worker: the steps on its part of the data that the weights include.
  std::vector<std::uint64_t> steps_done() const;
  // By group: the newest push of each worker that must not be applied again.
  std::vector<checkpoint::HighWaterMark> marks() const { return workers_.marks(); }
  // Without the fields that only the server process knows (seconds, bytes, memory).
  wire::StatusReport report() const;
  const std::vector<std::uint64_t>& pushes() const { return pushes_; }  // by phase
  std::uint64_t pulls() const { return pulls_; }
  // Of rows; bytes of other tensors follow from the number of pushes and pulls.
  std::uint64_t pushed_row_bytes() const { return pushed_row_bytes_; }
  std::uint64_t pulled_row_bytes() const { return pulled_row_bytes_; }

 private:
  struct Observation {
    wire::Member member;
    wire::Pull pull;
  };
  // State of the current event.
  struct Current {
    TimePoint now;
    Actions actions;                 // so far
    std::vector<WorkerId> released;  // by every group
    Version scheduled;               // the job's version at its start
    bool updated = false;            // it made an update
  };

  void begin(TimePoint now) { current_.now = now; }
  Actions finish();
  void hold(WorkerRecord& worker, ServerId server, Sequence sequence);
  void count_push(WorkerRecord& worker);
  void ask_for_initial_weights();
  void try_start();
  void enter(WorkerId id);
  bool is_in_phase(std::uint32_t group, std::uint32_t phase) const { return groups_[group].phase == phase; }
  // Passes an event to every engine in turn, and adds their decisions to the actions.
  template <class Event>
  void dispatch(const Event& event);
  void decide_all(std::uint32_t group, const std::vector<strategy::Decision>& decisions);
  void limit_engines();
  bool is_stuck() const;
  bool apply_latest_phase();
  void decide(std::uint32_t group, const strategy::Apply& apply);
  void decide(std::uint32_t group, const strategy::Accumulate& accumulate);
  void decide(std::uint32_t group, const strategy::Drop& drop);
  void decide(std::uint32_t group, const strategy::Release& release);
  void answer_released();
  bool ends_for(const WorkerRecord& worker) const;
  void answer_observers();

  const Options options_;
  const strategy::StrategySpec spec_;
  Current current_;
  ParameterGroups groups_;
  std::vector<std::uint32_t> first_of_phase_ = {0};  // the first group of each phase
  std::vector<strategy::Engine> engines_;            // by group
  WorkerTable workers_;
  LossWindow loss_;
  Version ordered_;  // after all orders so far
  std::vector<Observation> observations_;
  std::vector<Incarnation> observers_;  // by number
  std::uint32_t next_server_ = 1;
  std::set<std::uint32_t> initialized_;  // servers that have weights
  std::optional<WorkerId> initializer_;
  std::vector<std::uint64_t> pushes_;  // by phase
  std::uint64_t pulls_ = 0;
  std::uint64_t pushed_row_bytes_ = 0, pulled_row_bytes_ = 0;
  bool resumed_ = false;   // the weights come from a checkpoint, not from a worker
  bool stopping_ = false;  // no step begins any more
};

}  // namespace capstan::server
