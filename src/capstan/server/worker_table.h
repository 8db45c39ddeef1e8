#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/status.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// A worker's part in the job, as the leader sees it.
enum class WorkerPhase : std::uint8_t {
  kAbsent,    // has not come
  kJoined,    // has a place
  kReady,     // joined every server, and asked for its first weights
  kTraining,  // takes part in the strategy's decisions
  kLeft,
  kLost
};
const char* name(WorkerPhase phase);
// The one table of transitions. A lost worker's place may be taken by a new incarnation.
bool may_follow(WorkerPhase from, WorkerPhase to);

// A worker's newest push: staged while not every server holds it, counted once the strategy has it. Each
// group of tensors then applies, accumulates or drops it, which its high-water mark records.
enum class PushState : std::uint8_t { kNone, kStaged, kCounted };

struct WorkerRecord {
  wire::WorkerRow row;  // what is reported; without `state`
  WorkerPhase phase = WorkerPhase::kAbsent;
  Incarnation incarnation;
  std::optional<std::uint64_t> pull_request;  // what the next release answers; none: the newest push
  wire::Push push;                            // newest
  PushState push_state = PushState::kNone;
  std::set<std::uint32_t> holders;  // servers that hold the push `held`
  Sequence held;
  StepCount applied;           // up to the newest push that became part of the weights
  std::uint32_t underway = 0;  // samples since that push, as far as is known
  Version became;              // which version its newest push is part of; 0 for none
  // By group of tensors:
  std::vector<Sequence> marks;  // newest push that was applied, accumulated or dropped
  std::vector<bool> released;   // since its newest push, or the answer to it
  std::vector<Version> given;   // of the weights it got last

  // Checks the table of transitions.
  void enter(WorkerPhase next);
  bool is_live() const;
  bool has_ended() const { return phase == WorkerPhase::kLeft || phase == WorkerPhase::kLost; }
};

// The workers of a job by rank, and who may take which place. Owned by the coordinator; not thread-safe.
class WorkerTable {
 public:
  WorkerTable(std::uint32_t workers, std::size_t groups);

  std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }
  WorkerRecord& operator[](WorkerId worker) { return records_[worker.value]; }
  const WorkerRecord& operator[](WorkerId worker) const { return records_[worker.value]; }
  auto begin() const { return records_.begin(); }
  auto end() const { return records_.end(); }

  // Marks of a checkpoint: pushes of these incarnations that come again are known.
  void resume(std::vector<checkpoint::HighWaterMark> marks) { earlier_marks_ = std::move(marks); }

  // A worker gets the rank it asks for, or the lowest free one, then the lowest lost one. A rank in use is
  // refused unless the same incarnation comes back.
  Result<WorkerId> admit(std::optional<std::uint32_t> rank, Incarnation incarnation);

  std::uint32_t count(WorkerPhase phase) const;
  bool all_ended() const;
  std::vector<checkpoint::HighWaterMark> marks() const;

 private:
  std::optional<std::uint32_t> free_rank(Incarnation incarnation) const;
  Status check_place(std::uint32_t rank, Incarnation incarnation) const;
  void take_place(std::uint32_t rank, Incarnation incarnation);

  const std::size_t groups_;
  std::vector<WorkerRecord> records_;
  std::vector<checkpoint::HighWaterMark> earlier_marks_;
};

}  // namespace capstan::server
