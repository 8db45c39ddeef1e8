#include "capstan/server/worker_table.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan::server {
namespace {

using enum WorkerPhase;

struct Row {
  WorkerPhase from;
  std::initializer_list<WorkerPhase> to;
};

const Row kTransitions[] = {
    {kAbsent, {kJoined, kLost}},
    {kJoined, {kReady, kLeft, kLost}},
    {kReady, {kTraining, kLeft, kLost}},
    {kTraining, {kLeft, kLost}},
    {kLeft, {}},
    {kLost, {kJoined}},
};

const Row& row_of(WorkerPhase phase) {
  return *std::ranges::find(kTransitions, phase, &Row::from);
}

}  // namespace

bool may_follow(WorkerPhase from, WorkerPhase to) {
  return std::ranges::find(row_of(from).to, to) != row_of(from).to.end();
}

void WorkerRecord::enter(WorkerPhase next) {
  CAPSTAN_CHECK(may_follow(phase, next), "a worker's phases follow the table of transitions");
  phase = next;
}

bool WorkerRecord::is_live() const {
  return phase == kJoined || phase == kReady || phase == kTraining;
}

void WorkerRecord::resize(std::size_t groups) {
  marks.resize(groups);
  released.resize(groups);
  given.resize(groups);
}

WorkerTable::WorkerTable(std::uint32_t workers, std::size_t groups) : records_(workers) {
  set_groups(groups);
}

void WorkerTable::set_groups(std::size_t groups) {
  groups_ = groups;
  for (auto& record : records_) record.resize(groups);
}

Result<WorkerId> WorkerTable::admit(std::optional<std::uint32_t> rank, Incarnation incarnation,
                                    std::span<const std::uint32_t> doubtful) {
  if (!rank) rank = free_rank(incarnation);
  if (!rank) return all_taken(doubtful);
  if (auto bad = check_place(*rank, incarnation, doubtful); !bad.is_ok()) return bad;
  const auto& record = records_[*rank];
  const bool reconnects = record.is_live() && record.incarnation == incarnation;
  if (!reconnects) take_place(*rank, incarnation);
  return WorkerId{*rank};
}

std::optional<std::uint32_t> WorkerTable::free_rank(Incarnation incarnation) const {
  // The worker may have been assigned a rank already, and the answer was lost.
  const auto again = std::ranges::find_if(
      records_, [&](const WorkerRecord& w) { return w.phase != kAbsent && w.incarnation == incarnation; });
  if (again != records_.end()) return static_cast<std::uint32_t>(again - records_.begin());
  for (const auto phase : {kAbsent, kLost}) {
    const auto free = std::ranges::find(records_, phase, &WorkerRecord::phase);
    if (free != records_.end()) return static_cast<std::uint32_t>(free - records_.begin());
  }
  return {};
}

Status WorkerTable::all_taken(std::span<const std::uint32_t> doubtful) const {
  const auto may_be_lost = [&](std::uint32_t rank) { return records_[rank].is_live(); };
  if (std::ranges::any_of(doubtful, may_be_lost))
    return Status::unavailable("all ranks are taken, and the loss of one is not certain yet");
  return Status::refused(fmt::format("this job has {} workers, and all ranks are taken", size()));
}

Status WorkerTable::check_place(std::uint32_t rank, Incarnation incarnation,
                                std::span<const std::uint32_t> doubtful) const {
  if (rank >= size())
    return Status::refused(
        fmt::format("worker {} does not exist: this job has {} workers, from 0", rank, size()));
  const auto& record = records_[rank];
  const bool is_same = record.incarnation == incarnation;
  if (record.is_live() && !is_same) {
    if (std::ranges::find(doubtful, rank) != doubtful.end())
      return Status::unavailable(
          fmt::format("the previous process of worker {} is not known to be lost yet", rank));
    return Status::refused(fmt::format("worker {} has already joined", rank));
  }
  if (record.phase == kLeft)
    return Status::refused(fmt::format("worker {} has finished its part of this job", rank));
  if (record.phase == kLost && is_same) return Status::refused("the servers have declared this worker lost");
  return Status::ok();
}

// A new incarnation continues with its predecessor's part of the data.
void WorkerTable::take_place(std::uint32_t rank, Incarnation incarnation) {
  auto& record = records_[rank];
  WorkerRecord fresh;
  fresh.phase = record.phase;
  fresh.enter(kJoined);
  fresh.incarnation = incarnation;
  fresh.applied = record.applied;
  fresh.accumulated_steps = record.accumulated_steps;
  fresh.resize(groups_);
  for (const auto& mark : earlier_marks_) {
    if (mark.worker.value != rank || mark.incarnation != incarnation) continue;
    fresh.marks[mark.group] = mark.sequence;
    fresh.push_state = PushState::kCounted;
  }
  // The worker repeats a push that some groups lack.
  fresh.push.sequence = fresh.held = std::ranges::min(fresh.marks);
  record = std::move(fresh);
}

void WorkerTable::apply_accumulated() {
  for (auto& record : records_) {
    if (!record.accumulated_steps) continue;
    record.applied = *std::exchange(record.accumulated_steps, std::nullopt);
    for (auto& mark : record.marks) mark = std::max(mark, record.accumulated);
  }
}

std::uint32_t WorkerTable::count(WorkerPhase phase) const {
  return static_cast<std::uint32_t>(std::ranges::count(records_, phase, &WorkerRecord::phase));
}

bool WorkerTable::all_ended() const {
  return std::ranges::all_of(records_, &WorkerRecord::has_ended);
}

std::vector<checkpoint::HighWaterMark> WorkerTable::marks() const {
  std::vector<checkpoint::HighWaterMark> marks;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const auto& record = records_[i];
    for (std::uint32_t g = 0; g < record.marks.size(); ++g) {
      if (record.marks[g] != Sequence{}) marks.push_back({{i}, record.incarnation, record.marks[g], g});
    }
  }
  return marks;
}

}  // namespace capstan::server
