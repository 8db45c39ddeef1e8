#include "capstan/server/coordinator.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan::server {

using wire::Role;
using wire::WorkerState;

Coordinator::Coordinator(const Options& options, Outbox outbox)
    : options_(options),
      outbox_(std::move(outbox)),
      engine_(strategy::parse_plan(options.strategy, options.workers)),
      workers_(options.workers) {
  if (options.max_steps > 0) carry_out(engine_.limit({options.max_steps}));
}

void Coordinator::resume(Version version, std::vector<checkpoint::Mark> marks) {
  engine_.resume(version);
  ordered_ = version;
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
    worker = Worker{};
    worker.row.state = WorkerState::kLive;
    worker.incarnation = incarnation;
    worker.applied = applied;
    for (const auto& mark : earlier_marks_) {
      if (mark.worker.value != *index || mark.incarnation != incarnation) continue;
      worker.mark = worker.push.sequence = worker.holding = mark.sequence;
      worker.counted = true;
    }
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
  const auto& push = worker.push;
  if (!engine_.is_live(push.worker)) return;
  worker.counted = true;
  auto& row = worker.row;
  row.clock = push.clock;
  row.loss = push.loss;
  row.samples += push.samples;
  ++row.pushes;
  row.compute_seconds += 1e-6 * push.compute_us;
  row.wait_seconds += 1e-6 * push.wait_us;
  row.data_seconds += 1e-6 * push.data_us;
  ++pushes_;
  carry_out(engine_.push({push.worker, push.sequence, push.clock, push.version, push.samples}));
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
  if (engine_.is_live({member.index})) {
    // Its newest push is answered by the weights that it becomes part of, also where a server still lacks it.
    const bool push_is_coming = worker.push.sequence != Sequence{} && !worker.counted;
    if (!push_is_coming) carry_out(engine_.pull({member.index}));
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
  carry_out(engine_.begin());
}

void Coordinator::enter(WorkerId id) {
  carry_out(engine_.join(id));
  carry_out(engine_.pull(id));
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
  if (initializer_ == WorkerId{member.index}) initializer_.reset();
  carry_out(engine_.remove({member.index}));
  ask_for_initial_weights();
  try_start();
  answer_observers();
}

void Coordinator::stop() {
  carry_out(engine_.limit(engine_.version()));
}

void Coordinator::tick() {
  if (const auto at = engine_.deadline(); at && *at <= SteadyClock::now()) carry_out(engine_.tick());
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

std::vector<checkpoint::Mark> Coordinator::marks() const {
  std::vector<checkpoint::Mark> marks;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].mark != Sequence{}) marks.push_back({{i}, workers_[i].incarnation, workers_[i].mark});
  }
  return marks;
}

wire::StatusReport Coordinator::report() const {
  wire::StatusReport report;
  report.started = started();
  report.finished = finished();
  report.version = engine_.version();
  report.dropped_pushes = engine_.dropped();
  report.staleness_mean = engine_.staleness().mean;
  report.staleness_max = engine_.staleness().max;
  const auto &from = loss_marks_.front(), &to = loss_marks_.back();
  if (to.samples > from.samples)
    report.loss = (to.sum - from.sum) / static_cast<double>(to.samples - from.samples);
  report.samples = loss_marks_.back().samples;
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    auto& row = report.workers.emplace_back(workers_[i].row);
    const auto staleness = engine_.staleness({i});
    row.staleness_mean = staleness.mean;
    row.staleness_max = staleness.max;
  }
  return report;
}

void Coordinator::carry_out(const std::vector<strategy::Decision>& decisions) {
  for (const auto& decision : decisions) std::visit([&](const auto& d) { carry_out(d); }, decision);
  const auto updates = [](const strategy::Decision& d) { return std::holds_alternative<strategy::Apply>(d); };
  if (std::ranges::any_of(decisions, updates)) outbox_.settled();
}

void Coordinator::carry_out(const strategy::Apply& apply) {
  wire::ApplyOrder order{apply.before,        {},          apply.rule.kind, apply.rule.rate,
                         apply.rule.strength, apply.folded};
  auto mark = loss_marks_.back();
  if (apply.folded) {
    mark.sum += folded_.sum;
    mark.samples += folded_.samples;
    folded_ = {};
  }
  for (const auto& merge : apply.merged) {
    order.contributions.push_back({merge.worker, merge.sequence, merge.factor});
    auto& worker = workers_[merge.worker.value];
    const auto& push = worker.push;
    worker.mark = push.sequence;
    worker.applied = push.clock.value;
    mark.sum += static_cast<double>(push.loss) * push.samples;
    mark.samples += push.samples;
  }
  loss_marks_.push_back(mark);
  if (loss_marks_.size() > options_.loss_window + 1) loss_marks_.pop_front();
  outbox_.order(order);
  ordered_ = {apply.before.value + 1};
  answer_observers();  // right behind the update, so that an observer gets exactly the version it asked for
}

void Coordinator::carry_out(const strategy::Fold& fold) {
  auto& worker = workers_[fold.worker.value];
  worker.mark = fold.sequence;
  worker.applied = worker.push.clock.value;
  folded_.sum += static_cast<double>(worker.push.loss) * worker.push.samples;
  folded_.samples += worker.push.samples;
  outbox_.order(wire::FoldOrder{{fold.worker, fold.sequence, fold.factor}, fold.first});
}

void Coordinator::carry_out(const strategy::Drop& drop) {
  workers_[drop.worker.value].mark = drop.sequence;
  outbox_.order(wire::DropOrder{drop.worker, drop.sequence});
}

void Coordinator::carry_out(const strategy::Release& release) {
  const auto& worker = workers_[release.worker.value];
  ++pulls_;
  const auto request = worker.pull_request.value_or(worker.push.sequence.value);
  outbox_.order(wire::DeliverOrder{{Role::kWorker, release.worker.value},
                                   {request, release.version, release.applied, engine_.exhausted()}});
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
