#include "capstan/server/push_staging.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/data_segment.h"

namespace capstan::server {
namespace {

// An epoch has fewer: indices of samples have 32 bits.
constexpr std::uint64_t kMostStepsPerPush = std::uint64_t{1} << 32;

}  // namespace

bool PushStaging::Entry::in_use() const {
  return std::ranges::any_of(settled, [&](Sequence s) { return s < staged; });
}

PushStaging::PushStaging(Range shard, const FlatLayout& layout, ParameterGroups groups,
                         std::vector<checkpoint::HighWaterMark> marks)
    : shard_(shard),
      layout_size_(layout.size()),
      groups_(std::move(groups)),
      rows_(layout, groups_, shard),
      parts_(push_ranges(layout, groups_, shard)),
      marks_(std::move(marks)) {}

bool PushStaging::join(WorkerId worker, Incarnation incarnation) {
  auto& entry = entries_[worker];
  const bool reconnects = entry.arena && entry.incarnation == incarnation;
  if (!reconnects) {
    entry = {incarnation, std::make_shared<WorkerArena>(shard_, layout_size_), {}, {}, false, {}};
    entry.arena->rows().pushed.resize(rows_.parts().size());
    entry.arena->rows().given.resize(rows_.parts().size());
    entry.settled.resize(groups_.size());
    for (const auto& mark : marks_) {
      if (mark.worker == worker && mark.incarnation == incarnation) entry.settled[mark.group] = mark.sequence;
    }
    entry.staged = std::ranges::min(entry.settled);  // the worker repeats a push that some groups lack
  }
  entry.arena->take_initial();  // the rest of what its earlier connection sent never arrives
  entry.announced = false;
  entry.arriving.reset();  // the connection that it came from has ended
  return !reconnects;
}

void PushStaging::forget(WorkerId worker, Incarnation incarnation) {
  const auto entry = entries_.find(worker);
  if (entry != entries_.end() && entry->second.incarnation == incarnation) entries_.erase(entry);
}

const PushStaging::Entry* PushStaging::find(WorkerId worker) const {
  const auto entry = entries_.find(worker);
  return entry == entries_.end() ? nullptr : &entry->second;
}

Status PushStaging::check(WorkerId from, const wire::Push& push, std::size_t payload_bytes) const {
  if (push.worker != from) return Status::malformed("a push with another worker's rank");
  const auto* entry = find(from);
  if (!entry || entry->incarnation != push.incarnation)
    return Status::malformed("a push of another incarnation");
  if (push.sequence > entry->staged) {
    if (auto bad = check_new(*entry, push); !bad.is_ok()) return bad;
  }
  const auto phase = groups_.phase_of(push.sequence.value);
  if (push.phase != phase)
    return Status::malformed(fmt::format("a push of phase {} where phase {} is due", push.phase, phase));
  return check_payload(*entry, push, payload_bytes);
}

Status PushStaging::check_payload(const Entry& entry, const wire::Push& push, std::size_t bytes) const {
  if (!rows_.empty()) return check_rows(entry, push, bytes);
  if (push.rows) return Status::malformed("a push with rows, of which this server has none");
  const auto expected = entry.arena->shares_gradients() ? 0 : parts_[push.phase].size() * sizeof(float);
  if (bytes != expected)
    return Status::malformed(
        fmt::format("a push with a payload of {} bytes where phase {} has {}", bytes, push.phase, expected));
  return Status::ok();
}

// The numbers of the rows are checked when they have arrived.
Status PushStaging::check_rows(const Entry& entry, const wire::Push& push, std::size_t bytes) const {
  if (!push.rows) return Status::malformed("a push without rows, of which this server has some");
  const auto payload = row_payload(entry, push.phase);
  const auto& counts = push.rows->counts;
  if (counts.size() != payload.parts.size())
    return Status::malformed(fmt::format("a push with rows of {} tensors where phase {} has {}",
                                         counts.size(), push.phase, payload.parts.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > payload.parts[i]->rows())
      return Status::malformed(fmt::format("a push with {} rows of a tensor of which {} are here", counts[i],
                                           payload.parts[i]->rows()));
  }
  const auto possible = payload.possible_size(counts);
  if (bytes % sizeof(float) != 0 || bytes < possible.begin * sizeof(float) ||
      bytes > possible.end * sizeof(float))
    return Status::malformed(fmt::format("a push with a payload of {} bytes where its rows have {} to {}",
                                         bytes, possible.begin * sizeof(float),
                                         possible.end * sizeof(float)));
  return Status::ok();
}

RowPayload PushStaging::row_payload(const Entry& entry, std::uint32_t phase) const {
  return {rows_.dense(phase), parts_of(rows_, phase), !entry.arena->shares_gradients()};
}

Status PushStaging::check_new(const Entry& entry, const wire::Push& push) const {
  if (!is_open_) return Status::malformed("a push before there are weights");
  if (push.sequence.value != entry.staged.value + 1) return Status::malformed("a push out of order");
  if (push.steps < entry.steps || push.steps.value - entry.steps.value > kMostStepsPerPush ||
      push.steps.value > kMostSteps)
    return Status::malformed("a push with an impossible number of steps");
  if (entry.in_use()) return Status::malformed("a push before the previous one was answered");
  return Status::ok();
}

Result<transport::Placement> PushStaging::place(WorkerId from, const wire::Push& push, std::size_t bytes) {
  using transport::Placement;
  if (auto bad = check(from, push, bytes); !bad.is_ok()) return bad;
  auto& entry = entries_.at(from);
  if (push.sequence <= entry.staged) return Placement::discard();
  if (!rows_.empty()) {
    if (entry.arriving) return Status::malformed("a push while another one arrives");
    entry.arriving.emplace(bytes / sizeof(float));
    return Placement::receive(std::as_writable_bytes(std::span(*entry.arriving)));
  }
  const auto part = parts_[push.phase];
  return Placement::receive(
      std::as_writable_bytes(entry.arena->gradients().subspan(part.begin, part.size())));
}

Result<bool> PushStaging::stage(WorkerId from, const wire::Push& push, std::size_t payload_bytes) {
  if (auto bad = check(from, push, payload_bytes); !bad.is_ok()) return bad;
  auto& entry = entries_.at(from);
  const bool is_new = push.sequence > entry.staged;
  if (!is_new && entry.announced) return false;  // the first one will be answered
  if (is_new && !rows_.empty()) {
    if (auto bad = take_rows(entry, push); !bad.is_ok()) return bad;
  }
  if (is_new) {
    entry.staged = push.sequence;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].phase != push.phase) entry.settled[g] = push.sequence;
    }
    entry.steps = push.steps;
  }
  entry.announced = true;
  return true;
}

// A malformed push changes at most the worker's own gradients.
Status PushStaging::take_rows(Entry& entry, const wire::Push& push) const {
  const auto payload = std::exchange(entry.arriving, {}).value_or(std::vector<float>());
  const auto gradients = entry.arena->gradients();
  auto lists = row_payload(entry, push.phase).unpack(push.rows->counts, payload, gradients.data());
  if (!lists) return lists.status();
  auto& rows = entry.arena->rows();
  for (std::size_t i = 0; i < lists->size(); ++i)
    rows.pushed[rows_.of_phase(push.phase)[i]] = std::move((*lists)[i]);
  rows.push = push.sequence;
  rows.held = push.rows->held;
  return Status::ok();
}

Status PushStaging::share(WorkerId from, const wire::Share& share, transport::Segment segment) {
  const auto* entry = find(from);
  if (!entry) return Status::malformed("shared memory of an unknown worker");
  return share.arena == wire::Arena::kGradients ? entry->arena->take_gradients(std::move(segment))
                                                : entry->arena->take_weights(std::move(segment));
}

std::shared_ptr<WorkerArena> PushStaging::held(WorkerId worker, Sequence sequence,
                                               std::uint32_t group) const {
  const auto* entry = find(worker);
  const bool is_held = entry && entry->staged == sequence && entry->settled[group] < sequence;
  return is_held ? entry->arena : nullptr;
}

void PushStaging::settle(WorkerId worker, Sequence sequence, std::uint32_t group) {
  const auto entry = entries_.find(worker);
  if (entry != entries_.end() && entry->second.staged == sequence) entry->second.settled[group] = sequence;
}

std::shared_ptr<WorkerArena> PushStaging::arena(WorkerId worker) const {
  const auto* entry = find(worker);
  return entry ? entry->arena : nullptr;
}

}  // namespace capstan::server
