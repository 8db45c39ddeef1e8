#include "capstan/server/coordinator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan::server {

using wire::Role;
using wire::WorkerState;

Coordinator::Coordinator(const Options& options, Outbox outbox)
    : options_(options),
      outbox_(std::move(outbox)),
      engines_(strategy::make_engines(strategy::parse_strategy_spec(options.strategy, options.workers))),
      workers_(options.workers, absent_worker()) {
  if (options.max_steps > 0) (void)engines_[0].limit({options.max_steps});  // nothing to decide yet
}

Coordinator::Worker Coordinator::absent_worker() const {
  Worker worker;
  worker.marks.resize(engines_.size());
  worker.released.resize(engines_.size());
  worker.given.resize(engines_.size());
  return worker;
}

std::vector<Version> Coordinator::versions() const {
  std::vector<Version> versions;
  for (const auto& engine : engines_) versions.push_back(engine.version());
  return versions;
}

void Coordinator::resume(const std::vector<Version>& versions, std::vector<checkpoint::HighWaterMark> marks) {
  CAPSTAN_CHECK(versions.size() == engines_.size(), "a version for each group");
  for (std::size_t g = 0; g < engines_.size(); ++g) engines_[g].resume(versions[g]);
  ordered_ = versions[0];
  resumed_ = true;
  earlier_marks_ = std::move(marks);
}

Result<wire::Member> Coordinator::admit(Role role, std::optional<std::uint32_t> index,
                                        Incarnation incarnation) {
  if (role == Role::kObserver)
    return wire::Member{role, index && *index < next_observer_ ? *index : next_observer_++};
  if (role == Role::kServer) {
    if (next_server_ >= options_.servers) {
      return Status::refused(fmt::format("this job has {} servers, and all are here", options_.servers));
    }
    return wire::Member{role, next_server_++};
  }
  if (!index) {
    // It may have been given a place already, and not have heard of it.
    const auto again = std::ranges::find_if(workers_, [&](const Worker& w) {
      return w.row.state != WorkerState::kAbsent && w.incarnation == incarnation;
    });
    if (again != workers_.end()) index = static_cast<std::uint32_t>(again - workers_.begin());
  }
  if (!index) {
    const auto free =
        std::ranges::find(workers_, WorkerState::kAbsent, [](const Worker& w) { return w.row.state; });
    if (free == workers_.end()) {
      return Status::refused(fmt::format("this job has {} workers, and all are taken", workers_.size()));
    }
    index = static_cast<std::uint32_t>(free - workers_.begin());
  }
  if (*index >= workers_.size()) {
    return Status::refused(
        fmt::format("worker {} does not exist: this job has {} workers, from 0", *index, workers_.size()));
  }
  auto& worker = workers_[*index];
  const bool comes_back = worker.row.state == WorkerState::kLive && worker.incarnation == incarnation;
  if (worker.row.state == WorkerState::kLive && !comes_back) {
    return Status::refused(fmt::format("worker {} is here already", *index));
  }
  if (worker.row.state == WorkerState::kLeft) {
    return Status::refused(fmt::format("worker {} has finished its part of this job", *index));
  }
  if (worker.row.state == WorkerState::kLost && worker.incarnation == incarnation) {
    return Status::refused("the other parts of the job consider this worker lost");
  }
  if (!comes_back) {
    // A new process goes on with its predecessor's part of the data.
    const auto applied = worker.applied;
    worker = absent_worker();
    worker.row.state = WorkerState::kLive;
    worker.incarnation = incarnation;
    worker.applied = applied;
    for (const auto& mark : earlier_marks_) {
      if (mark.worker.value != *index || mark.incarnation != incarnation) continue;
      worker.marks[mark.group] = mark.sequence;
      worker.counted = true;
    }
    // A push that some groups have and others lack comes again for those.
    worker.push.sequence = worker.holding = std::ranges::min(worker.marks);
  }
  return wire::Member{role, *index};
}

void Coordinator::initialized(ServerId server) {
  initialized_.insert(server.value);
  answer_observers();
  try_start();
}

void Coordinator::pushed(const wire::Push& push) {
  auto& worker = workers_[push.worker.value];
  if (push.sequence <= worker.push.sequence)
    return;  // sent again; a Pull follows, if the answer got lost too
  worker.push = push;
  worker.counted = false;
  worker.pull_request.reset();
  hold(worker, ServerId{0}, push.sequence);
}

void Coordinator::staged(ServerId server, WorkerId id, Incarnation incarnation, Sequence sequence) {
  if (id.value >= workers_.size()) return;
  auto& worker = workers_[id.value];
  if (worker.incarnation == incarnation) hold(worker, server, sequence);
}

void Coordinator::hold(Worker& worker, ServerId server, Sequence sequence) {
  if (sequence > worker.holding) {
    worker.holding = sequence;
    worker.holders.clear();
  }
  if (sequence < worker.holding) return;
  worker.holders.insert(server.value);
  if (worker.holders.size() == options_.servers && !worker.counted && worker.push.sequence == sequence)
    count_push(worker);
}

void Coordinator::count_push(Worker& worker) {
  const auto push = worker.push;
  if (!engines_[0].is_live(push.worker)) return;
  worker.counted = true;
  auto& row = worker.row;
  row.steps = push.steps;
  row.loss = push.loss;
  row.samples += push.samples;
  worker.underway = 0;
  ++row.pushes;
  row.compute_seconds += 1e-6 * push.compute_us;
  row.wait_seconds += 1e-6 * push.wait_us;
  row.data_seconds += 1e-6 * push.data_us;
  ++pushes_;
  worker.released.assign(engines_.size(), false);
  dispatch([&](strategy::Engine& engine, std::uint32_t group) {
    if (worker.marks[group] >= push.sequence) return engine.pull(push.worker);  // had it before a resume
    const auto version = group == 0 ? push.version : worker.given[group];
    return engine.push({push.worker, push.sequence, push.steps, version, push.samples});
  });
}

void Coordinator::pull(const wire::Member& member, const wire::Pull& pull) {
  if (member.role != Role::kWorker) {
    std::erase_if(observations_, [&](const Observation& o) { return o.member == member; });
    observations_.push_back({member, pull});
    answer_observers();
    return;
  }
  auto& worker = workers_[member.index];
  worker.pull_request = pull.request;
  if (engines_[0].is_live({member.index})) {
    // Its newest push is answered by the weights that it becomes part of, also where a server still lacks it.
    const bool push_is_coming = worker.push.sequence != Sequence{} && !worker.counted;
    if (push_is_coming) return;
    dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.pull({member.index}); });
    return;
  }
  // Asked before: the connection broke since, and the question or its answer may have been lost with it.
  if (initializer_ == WorkerId{member.index} && initialized_.size() < options_.servers) {
    outbox_.ask_initial_weights(*initializer_);
  }
  worker.ready = true;
  ask_for_initial_weights();
  if (started()) {
    enter({member.index});
  } else {
    try_start();
  }
}

void Coordinator::progressed(WorkerId id, const wire::Progress& progress) {
  auto& worker = workers_[id.value];
  worker.row.steps = progress.steps;
  worker.row.loss = progress.loss;
  worker.underway = progress.samples;
}

void Coordinator::ask_for_initial_weights() {
  if (resumed_ || initialized_.size() == options_.servers || initializer_) return;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].ready) continue;
    initializer_ = WorkerId{i};
    outbox_.ask_initial_weights(*initializer_);
    return;
  }
}

void Coordinator::try_start() {
  if (started() || initialized_.size() < options_.servers) return;
  const bool complete = std::ranges::all_of(workers_, [](const Worker& w) {
    return w.ready || w.row.state == WorkerState::kLeft || w.row.state == WorkerState::kLost;
  });
  if (!complete || std::ranges::none_of(workers_, &Worker::ready)) return;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].ready) enter({i});
  }
  dispatch([](strategy::Engine& engine, std::uint32_t) { return engine.begin(); });
}

void Coordinator::enter(WorkerId id) {
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.join(id); });
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.pull(id); });
}

void Coordinator::gone(const wire::Member& member, bool lost) {
  if (member.role == Role::kObserver) {
    std::erase_if(observations_, [&](const Observation& o) { return o.member == member; });
    return;
  }
  if (member.role != Role::kWorker || member.index >= workers_.size()) return;
  auto& worker = workers_[member.index];
  if (worker.row.state == WorkerState::kLeft || worker.row.state == WorkerState::kLost) return;
  worker.row.state = lost ? WorkerState::kLost : WorkerState::kLeft;
  worker.ready = false;
  worker.underway = 0;  // it will not be handed in
  if (initializer_ == WorkerId{member.index}) initializer_.reset();
  dispatch([&](strategy::Engine& engine, std::uint32_t) { return engine.remove({member.index}); });
  ask_for_initial_weights();
  try_start();
  answer_observers();
}

void Coordinator::stop() {
  dispatch([](strategy::Engine& engine, std::uint32_t) { return engine.limit(engine.version()); });
}

void Coordinator::tick() {
  const auto now = SteadyClock::now();
  const auto is_due = [&](const strategy::Engine& e) { return e.deadline() && *e.deadline() <= now; };
  if (std::ranges::none_of(engines_, is_due)) return;
  dispatch([](strategy::Engine& engine, std::uint32_t) { return engine.tick(); });
}

std::vector<std::uint32_t> Coordinator::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < workers_.size() && !started(); ++i) {
    const auto state = workers_[i].row.state;
    if (!workers_[i].ready && state != WorkerState::kLeft && state != WorkerState::kLost) ranks.push_back(i);
  }
  return ranks;
}

bool Coordinator::finished() const {
  return std::ranges::all_of(workers_, [](const Worker& w) {
    return w.row.state == WorkerState::kLeft || w.row.state == WorkerState::kLost;
  });
}

std::uint32_t Coordinator::lost_workers() const {
  return static_cast<std::uint32_t>(
      std::ranges::count(workers_, WorkerState::kLost, [](const Worker& w) { return w.row.state; }));
}

bool Coordinator::all_lost() const {
  return lost_workers() == workers_.size();
}

std::vector<std::uint64_t> Coordinator::steps_done() const {
  std::vector<std::uint64_t> steps;
  for (const auto& worker : workers_) steps.push_back(worker.applied);
  return steps;
}

std::vector<checkpoint::HighWaterMark> Coordinator::marks() const {
  std::vector<checkpoint::HighWaterMark> marks;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const auto& worker = workers_[i];
    for (std::uint32_t g = 0; g < worker.marks.size(); ++g) {
      if (worker.marks[g] != Sequence{}) marks.push_back({{i}, worker.incarnation, worker.marks[g], g});
    }
  }
  return marks;
}

wire::StatusReport Coordinator::report() const {
  wire::StatusReport report;
  report.started = started();
  report.finished = finished();
  const auto& engine = engines_[0];
  report.version = engine.version();
  report.dropped_pushes = engine.dropped();
  report.staleness_mean = engine.staleness().mean;
  report.staleness_max = engine.staleness().max;
  const auto &from = loss_marks_.front(), &to = loss_marks_.back();
  if (to.samples > from.samples)
    report.loss = (to.sum - from.sum) / static_cast<double>(to.samples - from.samples);
  report.samples = loss_marks_.back().samples;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    auto& row = report.workers.emplace_back(workers_[i].row);
    row.samples += workers_[i].underway;
    const auto staleness = engine.staleness({i});
    row.staleness_mean = staleness.mean;
    row.staleness_max = staleness.max;
  }
  return report;
}

// Answers come last, behind the updates of every group: who goes on with an event sees all of it.
void Coordinator::dispatch(const Event& event) {
  scheduled_ = version();
  updated_ = false;
  const auto carry_out_all = [&](std::uint32_t group, const std::vector<strategy::Decision>& decisions) {
    for (const auto& decision : decisions) std::visit([&](const auto& d) { carry_out(group, d); }, decision);
  };
  for (std::uint32_t g = 0; g < engines_.size(); ++g) carry_out_all(g, event(engines_[g], g));
  for (std::uint32_t g = 1; engines_[0].exhausted() && g < engines_.size(); ++g) {
    if (!engines_[g].exhausted()) carry_out_all(g, engines_[g].limit(engines_[g].version()));
  }
  if (engines_.size() > 1) answer_observers();
  answer_released();
  if (updated_) outbox_.settled();
}

void Coordinator::carry_out(std::uint32_t group, const strategy::Apply& apply) {
  updated_ = true;
  wire::ApplyOrder order{apply.before,
                         {},
                         apply.rule.kind,
                         apply.rule.rate,
                         apply.rule.strength,
                         apply.accumulated,
                         group,
                         group == 0 ? apply.before : scheduled_};
  for (const auto& merge : apply.merged) {
    order.contributions.push_back({merge.worker, merge.sequence, merge.factor});
    workers_[merge.worker.value].marks[group] = merge.sequence;
  }
  if (group > 0) return outbox_.order(order);
  auto mark = loss_marks_.back();
  if (apply.accumulated) {
    mark.sum += accumulated_.sum;
    mark.samples += accumulated_.samples;
    accumulated_ = {};
  }
  for (const auto& merge : apply.merged) {
    auto& worker = workers_[merge.worker.value];
    const auto& push = worker.push;
    worker.applied = push.steps.value;
    mark.sum += static_cast<double>(push.loss) * push.samples;
    mark.samples += push.samples;
  }
  loss_marks_.push_back(mark);
  if (loss_marks_.size() > options_.loss_window + 1) loss_marks_.pop_front();
  outbox_.order(order);
  ordered_ = {apply.before.value + 1};
  // Right behind the update, so that an observer gets exactly the version it asked for; behind the updates of
  // other groups, where there are any.
  if (engines_.size() == 1) answer_observers();
}

void Coordinator::carry_out(std::uint32_t group, const strategy::Accumulate& accumulate) {
  CAPSTAN_CHECK(engines_.size() == 1, "no strategy of groups folds");
  auto& worker = workers_[accumulate.worker.value];
  worker.marks[group] = accumulate.sequence;
  worker.applied = worker.push.steps.value;
  accumulated_.sum += static_cast<double>(worker.push.loss) * worker.push.samples;
  accumulated_.samples += worker.push.samples;
  outbox_.order(
      wire::AccumulateOrder{{accumulate.worker, accumulate.sequence, accumulate.factor}, accumulate.first});
}

void Coordinator::carry_out(std::uint32_t group, const strategy::Drop& drop) {
  workers_[drop.worker.value].marks[group] = drop.sequence;
  outbox_.order(wire::DropOrder{drop.worker, drop.sequence, group});
}

void Coordinator::carry_out(std::uint32_t group, const strategy::Release& release) {
  auto& worker = workers_[release.worker.value];
  if (group == 0) worker.became = release.applied;
  worker.released[group] = true;
  if (std::ranges::all_of(worker.released, std::identity())) released_.push_back(release.worker);
}

void Coordinator::answer_released() {
  std::ranges::sort(released_);  // by rank
  for (const auto id : std::exchange(released_, {})) {
    auto& worker = workers_[id.value];
    worker.released.assign(engines_.size(), false);
    worker.given = versions();
    ++pulls_;
    const auto request = worker.pull_request.value_or(worker.push.sequence.value);
    outbox_.order(wire::DeliverOrder{{Role::kWorker, id.value},
                                     {request, version(), worker.became, engines_[0].exhausted()}});
  }
}

void Coordinator::answer_observers() {
  if (initialized_.size() < options_.servers) return;
  std::erase_if(observations_, [&](const Observation& o) {
    if (ordered_ < o.pull.at_least && !finished()) return false;
    outbox_.order(wire::DeliverOrder{o.member, {o.pull.request, ordered_, {}, finished()}});
    return true;
  });
}

}  // namespace capstan::server
