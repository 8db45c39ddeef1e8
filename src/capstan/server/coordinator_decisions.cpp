// What the coordinator makes of the decisions of its engines.

#include <algorithm>
#include <functional>
#include <utility>

#include "capstan/base/check.h"
#include "capstan/server/coordinator.h"

namespace capstan::server {

using wire::Role;

void Coordinator::decide_all(std::uint32_t group, const std::vector<strategy::Decision>& decisions) {
  for (const auto& decision : decisions) std::visit([&](const auto& d) { decide(group, d); }, decision);
}

// ---- phases ----

// At the job's limit no group makes another update. After a stop request no step begins: the groups of phase
// 0 make no other update, and those of later phases finish the steps that have begun.
void Coordinator::limit_engines() {
  for (std::uint32_t g = 0; g < engines_.size(); ++g) {
    const bool ends = engines_[0].exhausted() || (stopping_ && is_in_phase(g, 0));
    if (ends && !engines_[g].exhausted()) decide_all(g, engines_[g].limit(engines_[g].version()));
  }
}

// Whether every worker waits for an update that needs another worker. This happens only between phases: a
// worker that joins, or the loss of one, may leave workers in different phases of their steps.
bool Coordinator::is_stuck() const {
  if (groups_.phases() == 1 || !started()) return false;
  bool any = false;
  for (const auto& worker : workers_) {
    if (worker.phase != WorkerPhase::kTraining) continue;
    if (!worker.waits) return false;
    any = true;
  }
  return any;
}

// Workers that are ahead continue, and the others reach their phase. False if no group has a buffered push.
bool Coordinator::apply_latest_phase() {
  for (auto phase = groups_.phases(); phase-- > 0;) {
    bool applied = false;
    for (std::uint32_t g = 0; g < engines_.size(); ++g) {
      if (!is_in_phase(g, phase) || !engines_[g].has_buffered()) continue;
      decide_all(g, engines_[g].apply_buffered());
      applied = true;
    }
    if (!applied) continue;
    limit_engines();
    return true;
  }
  return false;
}

// ---- decisions ----

void Coordinator::decide(std::uint32_t group, const strategy::Apply& apply) {
  current_.updated = true;
  wire::ApplyOrder order{apply.before,
                         {},
                         apply.rule.kind,
                         apply.rule.rate,
                         apply.rule.strength,
                         apply.accumulated,
                         group,
                         group == 0 ? apply.before : current_.scheduled};
  for (const auto& merge : apply.merged) {
    order.contributions.push_back({merge.worker, merge.sequence, merge.factor});
    workers_[merge.worker].marks[group] = merge.sequence;
  }
  current_.actions.emplace_back(Order(std::move(order)));
  if (apply.accumulated) workers_.apply_accumulated();
  if (group > 0) return;
  for (const auto& merge : apply.merged) {
    auto& worker = workers_[merge.worker];
    worker.applied = worker.push.steps;
    loss_.add(worker.push);
  }
  loss_.close_update();
  ordered_ = {apply.before.value + 1};
  // Directly after the update, so that an observer gets exactly the version that it asked for; with several
  // groups, after the updates of all of them.
  if (engines_.size() == 1) answer_observers();
}

void Coordinator::decide(std::uint32_t, const strategy::Accumulate& accumulate) {
  CAPSTAN_CHECK(engines_.size() == 1, "no strategy accumulates in a job with groups");
  auto& worker = workers_[accumulate.worker];
  worker.accumulated = accumulate.sequence;
  worker.accumulated_steps = worker.push.steps;
  loss_.add(worker.push);
  current_.actions.emplace_back(Order(
      wire::AccumulateOrder{{accumulate.worker, accumulate.sequence, accumulate.factor}, accumulate.first}));
}

void Coordinator::decide(std::uint32_t group, const strategy::Drop& drop) {
  workers_[drop.worker].marks[group] = drop.sequence;
  current_.actions.emplace_back(Order(wire::DropOrder{drop.worker, drop.sequence, group}));
}

void Coordinator::decide(std::uint32_t group, const strategy::Release& release) {
  auto& worker = workers_[release.worker];
  const auto phase = worker.push.sequence == Sequence{} ? 0 : groups_.phase_of(worker.push.sequence.value);
  if (group == first_of_phase_[phase]) worker.became = release.applied;
  worker.released[group] = true;
  if (!std::ranges::all_of(worker.released, std::identity())) return;
  worker.waits = false;
  current_.released.push_back(release.worker);
}

// Whether the job ends for a worker with this answer. A worker continues if an earlier phase of its step was
// applied.
bool Coordinator::ends_for(const WorkerRecord& worker) const {
  if (engines_[0].exhausted()) return true;
  if (!stopping_) return false;
  const auto sequence = worker.push.sequence.value;
  return groups_.ends_step(sequence) || (groups_.phase_of(sequence) == 0 && worker.became == Version{});
}

void Coordinator::answer_released() {
  std::ranges::sort(current_.released);  // by rank
  for (const auto id : std::exchange(current_.released, {})) {
    auto& worker = workers_[id];
    worker.released.assign(engines_.size(), false);
    for (std::uint32_t g = 0; g < engines_.size(); ++g) worker.given[g] = engines_[g].version();
    if (groups_.ends_step(worker.push.sequence.value)) worker.step = version();
    ++pulls_;
    const auto request = worker.pull_request.value_or(worker.push.sequence.value);
    current_.actions.emplace_back(Order(wire::DeliverOrder{
        {Role::kWorker, id.value}, {request, version(), worker.became, ends_for(worker)}}));
  }
}

void Coordinator::answer_observers() {
  if (initialized_.size() < options_.servers) return;
  std::erase_if(observations_, [&](const Observation& o) {
    if (ordered_ < o.pull.at_least && !finished()) return false;
    current_.actions.emplace_back(
        Order(wire::DeliverOrder{o.member, {o.pull.request, ordered_, {}, finished()}}));
    return true;
  });
}

}  // namespace capstan::server
