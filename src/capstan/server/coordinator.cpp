#include "capstan/server/coordinator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan::server {

using wire::Role;

Coordinator::Coordinator(const Options& options)
    : options_(options),
      spec_(strategy::parse_strategy_spec(options.strategy, options.workers)),
      workers_(options.workers),
      loss_(options.loss_window) {
  set_groups({});
}

void Coordinator::set_groups(const ParameterGroups& groups) {
  CAPSTAN_CHECK(workers_.count(WorkerPhase::kReady) + workers_.count(WorkerPhase::kTraining) == 0,
                "no engine has a worker yet");
  groups_ = groups;
  engines_ = strategy::make_engines(spec_, groups, [this] { return current_.now; });
  workers_.set_groups(groups.size());
  pushes_.assign(groups.phases(), 0);
  first_of_phase_.assign(groups.phases(), 0);
  for (auto g = groups.size(); g-- > 0;) first_of_phase_[groups[g].phase] = g;
  // Nothing to decide yet.
  if (options_.max_steps > 0) (void)engines_[0].limit({options_.max_steps});
  if (stopping_) limit_engines();
}

void Coordinator::resume(const std::vector<Version>& versions, std::vector<checkpoint::HighWaterMark> marks) {
  CAPSTAN_CHECK(versions.size() == engines_.size(), "one version per group");
  for (std::size_t g = 0; g < engines_.size(); ++g) engines_[g].resume(versions[g]);
  ordered_ = versions[0];
  resumed_ = true;
  workers_.resume(std::move(marks));
}

// ---- events ----

Result<wire::Member> Coordinator::admit(Role role, std::optional<std::uint32_t> index,
                                        Incarnation incarnation, std::span<const std::uint32_t> doubtful) {
  if (role == Role::kObserver) {
    const bool reconnects = index && *index < observers_.size() && observers_[*index] == incarnation;
    if (reconnects) return wire::Member{role, *index};
    observers_.push_back(incarnation);
    return wire::Member{role, static_cast<std::uint32_t>(observers_.size() - 1)};
  }
  if (role == Role::kServer) {
    if (next_server_ >= options_.servers)
      return Status::refused(fmt::format("this job has {} servers, and all have joined", options_.servers));
    return wire::Member{role, next_server_++};
  }
  const auto worker = workers_.admit(index, incarnation, doubtful);
  if (!worker) return worker.status();
  return wire::Member{role, worker->value};
}

Actions Coordinator::initialized(ServerId server, TimePoint now) {
  begin(now);
  initialized_.insert(server.value);
  answer_observers();
  try_start();
  return finish();
}

Actions Coordinator::pushed(const wire::Push& push, TimePoint now) {
  begin(now);
  auto& worker = workers_[push.worker];
  // A repeated push is known already; a Pull follows if its answer was lost too.
  if (push.sequence > worker.push.sequence) {
    worker.push = push;
    worker.push_state = PushState::kStaged;
    worker.pull_request.reset();
    hold(worker, ServerId{0}, push.sequence);
  }
  return finish();
}

Actions Coordinator::staged(ServerId server, WorkerId id, Incarnation incarnation, Sequence sequence,
                            TimePoint now) {
  begin(now);
  if (id.value < workers_.size() && workers_[id].incarnation == incarnation)
    hold(workers_[id], server, sequence);
  return finish();
}

// Workers are answered after the updates of every group, so that they see all effects of an event.
template <class Event>
void Coordinator::dispatch(const Event& event) {
  current_.scheduled = version();
  for (std::uint32_t g = 0; g < engines_.size(); ++g) decide_all(g, event(engines_[g], g));
  if (engines_.size() > 1) {
    limit_engines();
    while (is_stuck() && apply_latest_phase()) {
    }
    answer_observers();
  }
  answer_released();
}

Actions Coordinator::pull(const wire::Member& member, const wire::Pull& pull, TimePoint now) {
  begin(now);
  if (member.role != Role::kWorker) {
    std::erase_if(observations_, [&](const Observation& o) { return o.member == member; });
    observations_.push_back({member, pull});
    answer_observers();
    return finish();
  }
  const WorkerId id{member.index};
  auto& worker = workers_[id];
  if (worker.has_ended()) return finish();
  worker.pull_request = pull.request;
  if (worker.phase == WorkerPhase::kTraining) {
    // The answer to a staged push waits for the update that includes it, even if a server still lacks it.
    if (worker.push_state != PushState::kStaged) {
      dispatch([&](strategy::Engine& engine, std::uint32_t group) {
        return worker.released[group] ? std::vector<strategy::Decision>() : engine.pull(id);
      });
    }
    return finish();
  }
  // The connection broke after the first request: the request or the weights may have been lost with it.
  if (initializer_ == id && initialized_.size() < options_.servers)
    current_.actions.emplace_back(AskInitialWeights{id});
  if (worker.phase == WorkerPhase::kJoined) worker.enter(WorkerPhase::kReady);
  ask_for_initial_weights();
  if (started()) {
    enter(id);
  } else {
    try_start();
  }
  return finish();
}

void Coordinator::progressed(WorkerId id, const wire::Progress& progress) {
  auto& worker = workers_[id];
  worker.row.steps = progress.steps;
  worker.row.loss = progress.loss;
  worker.underway = progress.samples;
}

void Coordinator::count_last_pull(WorkerId id, std::uint64_t row_bytes) {
  if (id.value < workers_.size() && !workers_[id].has_ended()) pulled_row_bytes_ += row_bytes;
}

Actions Coordinator::member_ended(const wire::Member& member, bool lost, TimePoint now) {
  begin(now);
  if (member.role == Role::kObserver)
    std::erase_if(observations_, [&](const Observation& o) { return o.member == member; });
  if (member.role != Role::kWorker || member.index >= workers_.size()) return finish();
  const WorkerId id{member.index};
  auto& worker = workers_[id];
  if (worker.has_ended()) return finish();
  const bool never_joined = worker.phase == WorkerPhase::kAbsent;
  worker.enter(lost || never_joined ? WorkerPhase::kLost : WorkerPhase::kLeft);
  worker.underway = 0;  // these samples will not be pushed
  worker.waits = false;
  if (initializer_ == id) initializer_.reset();
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.remove(id); });
  ask_for_initial_weights();
  try_start();
  answer_observers();
  return finish();
}

Actions Coordinator::stop(TimePoint now) {
  begin(now);
  stopping_ = true;
  dispatch([this](strategy::Engine& engine, std::uint32_t group) {
    return is_in_phase(group, 0) ? engine.limit(engine.version()) : engine.tick();
  });
  return finish();
}

Actions Coordinator::tick(TimePoint now) {
  begin(now);
  const auto is_due = [&](const strategy::Engine& e) { return e.deadline() && *e.deadline() <= now; };
  if (std::ranges::any_of(engines_, is_due))
    dispatch([](strategy::Engine& engine, std::uint32_t) { return engine.tick(); });
  return finish();
}

void Coordinator::recycle(Actions actions) {
  actions.clear();
  if (actions.capacity() > current_.actions.capacity()) current_.actions.swap(actions);
}

Actions Coordinator::finish() {
  if (std::exchange(current_.updated, false)) current_.actions.emplace_back(UpdatesOrdered{});
  return std::exchange(current_.actions, {});
}

// ---- pushes ----

void Coordinator::hold(WorkerRecord& worker, ServerId server, Sequence sequence) {
  if (sequence > worker.held) {
    worker.held = sequence;
    worker.holders.clear();
  }
  if (sequence < worker.held) return;
  if (std::ranges::find(worker.holders, server.value) == worker.holders.end())
    worker.holders.push_back(server.value);
  const bool is_everywhere = worker.holders.size() == options_.servers && worker.push.sequence == sequence;
  if (is_everywhere && worker.push_state == PushState::kStaged) count_push(worker);
}

void Coordinator::count_push(WorkerRecord& worker) {
  if (worker.phase != WorkerPhase::kTraining) return;
  const auto push = worker.push;
  worker.push_state = PushState::kCounted;
  auto& row = worker.row;
  row.steps = push.steps;
  const bool ends_step = groups_.ends_step(push.sequence.value);
  if (ends_step) {  // a step's samples count once
    row.loss = push.loss;
    row.samples += push.samples;
  }
  worker.underway = 0;
  ++row.pushes;
  row.compute_seconds += 1e-6 * push.compute_us;
  row.wait_seconds += 1e-6 * push.wait_us;
  row.data_seconds += 1e-6 * push.data_us;
  const auto phase = groups_.phase_of(push.sequence.value);
  ++pushes_[phase];
  if (push.rows) {
    pushed_row_bytes_ += push.rows->pushed_bytes;
    pulled_row_bytes_ += push.rows->pulled_bytes;
  }
  for (std::uint32_t g = 0; g < engines_.size(); ++g) {
    worker.released[g] = !is_in_phase(g, phase);
    if (worker.released[g]) worker.marks[g] = std::max(worker.marks[g], push.sequence);
  }
  worker.waits = true;
  dispatch([&](strategy::Engine& engine, std::uint32_t group) {
    if (!is_in_phase(group, phase))
      return ends_step ? engine.complete_step(push.worker) : std::vector<strategy::Decision>();
    if (worker.marks[group] >= push.sequence) return engine.pull(push.worker);  // applied before a resume
    const auto version = group == 0 ? push.version : worker.given[group];
    const auto step = groups_.phases() == 1 ? version : worker.step;
    return engine.push({push.worker, push.sequence, push.steps, version, push.samples, step, ends_step});
  });
}

// ---- the start ----

void Coordinator::ask_for_initial_weights() {
  if (resumed_ || initialized_.size() == options_.servers || initializer_) return;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[{i}].phase != WorkerPhase::kReady) continue;
    initializer_ = WorkerId{i};
    current_.actions.emplace_back(AskInitialWeights{*initializer_});
    return;
  }
}

void Coordinator::try_start() {
  if (started() || initialized_.size() < options_.servers) return;
  const auto ready = workers_.count(WorkerPhase::kReady);
  const auto ended = workers_.count(WorkerPhase::kLeft) + workers_.count(WorkerPhase::kLost);
  if (ready == 0 || ready + ended < workers_.size()) return;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[{i}].phase == WorkerPhase::kReady) enter({i});
  }
  dispatch([](strategy::Engine& engine, std::uint32_t) { return engine.begin(); });
}

void Coordinator::enter(WorkerId id) {
  workers_[id].enter(WorkerPhase::kTraining);
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.join(id); });
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.pull(id); });
}

}  // namespace capstan::server
