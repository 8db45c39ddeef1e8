#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "capstan/base/status.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/strategy/engine.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// What every server does next, in this order.
using Order = std::variant<wire::ApplyOrder, wire::AccumulateOrder, wire::DropOrder, wire::DeliverOrder>;

// The leader's mind: who takes part, which pushes count, and when weights go out. A push counts once every
// server holds it, so no shard ever uses a gradient that another lacks. Where tensors are in groups, each
// group has an engine, which is shown everything that happens; a worker has its answer when every group has
// released it. The job's version, its limit and what is reported are those of group 0. Knows no connection
// and no memory. Owned by the server's loop; not thread-safe.
class Coordinator {
 public:
  struct Options {
    std::string strategy = "sync";  // a plan: strategy/strategy_spec.h
    std::uint32_t workers = 1;
    std::uint32_t servers = 1;
    std::uint64_t max_steps = 0;      // 0: no limit
    std::uint64_t loss_window = 100;  // updates over which the reported loss is the mean
  };
  struct Outbox {
    std::function<void(const Order&)> order;            // carried out here and by every follower
    std::function<void(WorkerId)> ask_initial_weights;  // of this worker, for every server
    std::function<void()> settled;                      // all orders of an event that updated are given
  };

  // Throws UserError for a strategy that does not exist.
  Coordinator(const Options& options, Outbox outbox);

  Version version() const { return engines_[0].version(); }
  std::vector<Version> versions() const;  // by group

  // Goes on from a checkpoint's versions, by group; a worker of these lives whose pushes come again is known.
  // Before anybody joins.
  void resume(const std::vector<Version>& versions, std::vector<checkpoint::HighWaterMark> marks);

  // A client wants in. Workers get the rank they ask for, or the lowest free one. A rank in use is refused
  // unless it is the same incarnation coming back; an observer that comes back keeps its number.
  Result<wire::Member> admit(wire::Role role, std::optional<std::uint32_t> index, Incarnation incarnation);

  void initialized(ServerId server);  // the initial weights have arrived there
  void pushed(const wire::Push& push);
  void staged(ServerId server, WorkerId worker, Incarnation incarnation, Sequence sequence);
  void pull(const wire::Member& member, const wire::Pull& pull);
  void progressed(WorkerId worker, const wire::Progress& progress);
  void gone(const wire::Member& member, bool lost);
  void stop();  // end at the next step
  void tick();  // time has passed

  // Workers that have not come, or have not asked for weights: the job has not started because of them.
  std::vector<std::uint32_t> missing() const;
  Incarnation incarnation(std::uint32_t worker) const { return workers_[worker].incarnation; }

  bool started() const { return engines_[0].started(); }
  bool finished() const;  // every worker has left or is lost
  std::uint32_t lost_workers() const;
  bool all_lost() const;  // nobody is left, and nobody left of his own accord

  // Per worker: the steps of its way through the data that have become part of the weights; and the newest
  // push of each that is not to come again, by group.
  std::vector<std::uint64_t> steps_done() const;
  std::vector<checkpoint::HighWaterMark> marks() const;

  // All but what the process itself knows (seconds, bytes, memory).
  wire::StatusReport report() const;
  std::uint64_t pushes() const { return pushes_; }
  std::uint64_t pulls() const { return pulls_; }

 private:
  struct Worker {
    wire::WorkerRow row;
    Incarnation incarnation;
    bool ready = false;                         // joined everywhere, asked for its first weights
    std::optional<std::uint64_t> pull_request;  // what the next release answers; none: the newest push
    wire::Push push;                            // newest
    bool counted = false;                       // the engines have it
    std::set<std::uint32_t> holders;            // servers that hold the push `holding`
    Sequence holding;
    std::uint64_t applied = 0;   // steps up to the newest push that was applied
    std::uint32_t underway = 0;  // samples since that push, as far as it has told
    Version became;              // which version its newest push is part of; 0 for none
    // By group:
    std::vector<Sequence> marks;  // newest push that was applied or dropped
    std::vector<bool> released;   // since its newest push, or the answer to it
    std::vector<Version> given;   // of the weights it got last
  };
  struct Observation {
    wire::Member member;
    wire::Pull pull;
  };

  void hold(Worker& worker, ServerId server, Sequence sequence);
  void count_push(Worker& worker);
  void ask_for_initial_weights();
  void try_start();
  void enter(WorkerId id);
  using Event = std::function<std::vector<strategy::Decision>(strategy::Engine&, std::uint32_t group)>;
  // Shows every engine what has happened, in turn, and carries out what they decide.
  void dispatch(const Event& event);
  void carry_out(std::uint32_t group, const strategy::Apply& apply);
  void carry_out(std::uint32_t group, const strategy::Accumulate& accumulate);
  void carry_out(std::uint32_t group, const strategy::Drop& drop);
  void carry_out(std::uint32_t group, const strategy::Release& release);
  void answer_released();
  void answer_observers();
  Worker absent_worker() const;

  const Options options_;
  const Outbox outbox_;
  std::vector<strategy::Engine> engines_;  // by group
  std::vector<Worker> workers_;            // by rank
  std::vector<Observation> observations_;
  std::vector<WorkerId> released_;  // by every group, in the event that is under way
  Version scheduled_;               // the job's version when that began
  bool updated_ = false;            // it has
  Version ordered_;                 // what the orders so far lead to
  std::uint32_t next_observer_ = 0;
  std::uint32_t next_server_ = 1;
  std::set<std::uint32_t> initialized_;
  std::optional<WorkerId> initializer_;
  // Σ loss·samples and Σ samples after each of the last updates, the oldest first.
  struct LossMark {
    double sum = 0;
    std::uint64_t samples = 0;
  };
  std::deque<LossMark> loss_marks_ = {LossMark{}};
  LossMark accumulated_;  // of pushes that have been accumulated since the last update
  std::uint64_t pushes_ = 0, pulls_ = 0;
  bool resumed_ = false;  // servers have their weights from a checkpoint, and nobody is asked for any
  std::vector<checkpoint::HighWaterMark> earlier_marks_;
};

}  // namespace capstan::server
