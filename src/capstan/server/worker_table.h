#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/status.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// The phases of a worker, as the leader sees them.
enum class WorkerPhase : std::uint8_t {
  kAbsent,    // has not joined
  kJoined,    // has a rank
  kReady,     // joined every server, and asked for its first weights
  kTraining,  // takes part in the strategy's decisions
  kLeft,
  kLost
};
// The one table of transitions. A new incarnation may take a lost worker's rank.
bool may_follow(WorkerPhase from, WorkerPhase to);

// A worker's newest push: staged until every server holds it, counted once the strategy has it. Each
// parameter group of its phase then applies, accumulates or drops it and raises its high-water mark; the
// other groups do so at once.
enum class PushState : std::uint8_t { kNone, kStaged, kCounted };

struct WorkerRecord {
  wire::WorkerRow row;  // for status reports; without `state`
  WorkerPhase phase = WorkerPhase::kAbsent;
  Incarnation incarnation;
  std::optional<std::uint64_t> pull_request;  // that the next release answers; none: it answers the push
  wire::Push push;                            // newest
  PushState push_state = PushState::kNone;
  std::vector<std::uint32_t> holders;  // servers that hold the push `held`
  Sequence held;
  StepCount applied;           // steps up to the newest push that the weights include
  std::uint32_t underway = 0;  // samples since the newest push, as reported by the worker
  Version became;              // first version that includes its newest push; 0 for none
  Version step;                // the job's version when its current step began
  bool waits = false;          // its newest push is counted and not answered
  // Its newest push in the servers' sum, until an update applies the sum. A checkpoint does not have the sum.
  Sequence accumulated;
  std::optional<StepCount> accumulated_steps;
  // By parameter group:
  std::vector<Sequence> marks;  // newest push that was applied or dropped, or is of another phase
  std::vector<bool> released;   // since its newest push or the last answer; from the start in other phases
  std::vector<Version> given;   // of the weights delivered last

  // Checks the table of transitions.
  void enter(WorkerPhase next);
  void resize(std::size_t groups);
  bool is_live() const;
  bool has_ended() const { return phase == WorkerPhase::kLeft || phase == WorkerPhase::kLost; }
};

// The workers of a job by rank, and the rules for assigning ranks. Owned by the coordinator; not thread-safe.
class WorkerTable {
 public:
  explicit WorkerTable(std::uint32_t workers, std::size_t groups = 1);

  // Before any worker is ready.
  void set_groups(std::size_t groups);
  std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }
  WorkerRecord& operator[](WorkerId worker) { return records_[worker.value]; }
  const WorkerRecord& operator[](WorkerId worker) const { return records_[worker.value]; }
  auto begin() const { return records_.begin(); }
  auto end() const { return records_.end(); }

  // Sets a checkpoint's high-water marks: repeated pushes of these incarnations are not applied again.
  void resume(std::vector<checkpoint::HighWaterMark> marks) { earlier_marks_ = std::move(marks); }

  // A worker gets the rank that it asks for, or the lowest absent one, or the lowest lost one. A rank in use
  // is refused unless the same incarnation reconnects; if that rank is `doubtful`, it may be lost soon, and
  // the answer is kUnavailable.
  Result<WorkerId> admit(std::optional<std::uint32_t> rank, Incarnation incarnation,
                         std::span<const std::uint32_t> doubtful = {});

  // An update has applied the servers' sum.
  void apply_accumulated();

  std::uint32_t count(WorkerPhase phase) const;
  bool all_ended() const;
  std::vector<checkpoint::HighWaterMark> marks() const;

 private:
  std::optional<std::uint32_t> free_rank(Incarnation incarnation) const;
  Status check_place(std::uint32_t rank, Incarnation incarnation,
                     std::span<const std::uint32_t> doubtful) const;
  // No rank is free.
  Status all_taken(std::span<const std::uint32_t> doubtful) const;
  void take_place(std::uint32_t rank, Incarnation incarnation);

  std::size_t groups_ = 1;
  std::vector<WorkerRecord> records_;
  std::vector<checkpoint::HighWaterMark> earlier_marks_;
};

}  // namespace capstan::server
