#include "capstan/server/leader.h"

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "capstan/base/check.h"
#include "capstan/base/row_tensors.h"
#include "capstan/user_error.h"

namespace capstan::server {
namespace {

constexpr Duration kReadyTimeout = std::chrono::seconds(10);  // from joining the leader to the first pull

}  // namespace

// ---- members ----

void Leader::joined(const wire::Member& member, bool is_new) {
  if (member.role != wire::Role::kWorker) return;
  const WorkerId worker{member.index};
  have_buffers_.erase(worker);
  arriving_.erase(worker);
  if (is_new) buffers_.joined(worker);
  // A worker that joins late has time to become ready.
  start_by_ = std::max(start_by_, context_.loop.now() + std::min(options_.join_timeout, kReadyTimeout));
}

void Leader::member_ended(std::uint32_t rank, Incarnation incarnation, bool lost) {
  if (rank >= options_.job.workers) return;
  const wire::Member member{wire::Role::kWorker, rank};
  const auto current = coordinator_.incarnation(rank);
  if (incarnation != Incarnation{} && incarnation != current) {
    // A late message about an earlier incarnation: only a follower may still hold its state.
    context_.members.broadcast(wire::Role::kServer, wire::Gone{member, incarnation, lost});
    return;
  }
  run(coordinator_.member_ended(member, lost, context_.loop.now()));
  buffers_.worker_ended({rank}, lost);
  context_.members.broadcast(wire::Role::kServer, wire::Gone{member, current, lost});
  // The connection first: a payload may still be arriving in this worker's buffer.
  context_.members.forget(rank, current, lost);
  context_.shard.forget({rank}, current);
  arriving_.erase({rank});
  check_end();
}

void Leader::left(std::uint32_t rank, Incarnation incarnation, const wire::Leave& leave) {
  if (rank < options_.job.workers && coordinator_.incarnation(rank) == incarnation)
    coordinator_.count_last_pull({rank}, leave.pulled_bytes);
  member_ended(rank, incarnation, false);
}

void Leader::lost(const wire::Member& member, Incarnation incarnation, const Status& why) {
  switch (member.role) {
    case wire::Role::kWorker:
      return member_ended(member.index, incarnation, true);
    case wire::Role::kObserver:
      pulls_.erase(member);
      run(coordinator_.member_ended(member, true, context_.loop.now()));
      return check_end();
    case wire::Role::kServer:
      if (context_.lifecycle.is_open() && !coordinator_.finished()) {
        context_.log->error(
            fmt::format("{} is lost ({}): the job cannot continue", describe(member), why.message()));
        context_.lifecycle.end(Outcome::kFollowerLost);
      }
      if (checkpoints_) checkpoints_->lost(member.index);
  }
}

// ---- messages ----

void Leader::initialized() {
  run(coordinator_.initialized(ServerId{0}, context_.loop.now()));
}

void Leader::pushed(const wire::Push& push) {
  run(coordinator_.pushed(push, context_.loop.now()));
}

transport::Placement Leader::place(const wire::Member& member, const wire::Message& message,
                                   std::size_t bytes) {
  using transport::Placement;
  const auto size = buffers_.layout().size();
  if (!std::holds_alternative<wire::Buffers>(message) || member.role != wire::Role::kWorker ||
      bytes != size * sizeof(float))
    return Placement::refuse();
  const auto& values = arriving_[{member.index}].emplace_back(std::make_unique_for_overwrite<float[]>(size));
  return Placement::receive(std::as_writable_bytes(std::span(values.get(), size)));
}

Status Leader::take(const wire::Member& member, const wire::Message& message) {
  bool taken = false;
  switch (member.role) {
    case wire::Role::kWorker:
      taken = take_from_worker({member.index}, message);
      break;
    case wire::Role::kObserver:
      taken = take_from_observer(member, message);
      break;
    case wire::Role::kServer:
      taken = take_from_server({member.index}, message);
  }
  return taken ? Status::ok()
               : Status::malformed(
                     fmt::format("unexpected {} from {}", wire::name_of(message), describe(member)));
}

bool Leader::take_from_worker(WorkerId worker, const wire::Message& message) {
  if (std::holds_alternative<wire::Buffers>(message)) {
    auto& arrived = arriving_[worker];
    if (arrived.empty()) return true;  // a job without buffers
    const auto values = std::move(arrived.front());
    arrived.pop_front();
    buffers_.receive(worker, {values.get(), values.get() + buffers_.layout().size()});
  } else if (const auto* progress = std::get_if<wire::Progress>(&message)) {
    coordinator_.progressed(worker, *progress);
  } else if (const auto* pull = std::get_if<wire::Pull>(&message)) {
    run(coordinator_.pull({wire::Role::kWorker, worker.value}, *pull, context_.loop.now()));
  } else {
    return false;
  }
  return true;
}

bool Leader::take_from_observer(const wire::Member& member, const wire::Message& message) {
  if (const auto* pull = std::get_if<wire::Pull>(&message)) {
    pulls_[member] = *pull;
    pass_on_pulls();
  } else if (std::holds_alternative<wire::StopRequest>(message)) {
    stop();
  } else if (const auto* g = std::get_if<wire::Gone>(&message); g && g->member.role == wire::Role::kWorker) {
    member_ended(g->member.index, g->incarnation, g->lost);
  } else {
    return false;
  }
  return true;
}

// An observer that pulls again before it has read the previous answer gets one answer, to its newest pull.
// Every answer costs each server a copy of its weights.
void Leader::pass_on_pulls() {
  for (auto next = pulls_.begin(); next != pulls_.end();) {
    const auto pull = next++;
    if (context_.shard.is_answering(pull->first)) continue;
    const auto [member, request] = *pull;
    pulls_.erase(pull);
    run(coordinator_.pull(member, request, context_.loop.now()));
  }
}

bool Leader::take_from_server(ServerId server, const wire::Message& message) {
  const auto now = context_.loop.now();
  if (const auto* staged = std::get_if<wire::Staged>(&message)) {
    run(coordinator_.staged(server, staged->worker, staged->incarnation, staged->sequence, now));
  } else if (const auto* written = std::get_if<wire::CheckpointWritten>(&message)) {
    if (!checkpoints_) return false;
    checkpoints_->written(server.value, *written);
  } else if (std::holds_alternative<wire::Initialized>(message)) {
    run(coordinator_.initialized(server, now));
  } else if (std::holds_alternative<wire::StopRequest>(message)) {
    stop();
  } else if (const auto* g = std::get_if<wire::Gone>(&message); g && g->member.role == wire::Role::kWorker) {
    member_ended(g->member.index, g->incarnation, g->lost);
  } else {
    return false;
  }
  return true;
}

// ---- actions ----

void Leader::run(Actions actions) {
  for (const auto& action : actions) {
    if (const auto* order = std::get_if<Order>(&action)) {
      carry_out(*order);
    } else if (const auto* ask = std::get_if<AskInitialWeights>(&action)) {
      context_.members.send({wire::Role::kWorker, ask->worker.value}, wire::SendWeights{});
    } else if (checkpoints_ && checkpoints_->is_requested()) {
      begin_checkpoint();
    }
  }
  coordinator_.recycle(std::move(actions));
}

void Leader::carry_out(const Order& order) {
  std::visit([&](const auto& o) { context_.members.broadcast(wire::Role::kServer, o); }, order);
  if (const auto* delivery = std::get_if<wire::DeliverOrder>(&order)) return deliver(*delivery);
  const auto status = context_.shard.execute(order);
  CAPSTAN_CHECK(status.is_ok(), "this server can execute the coordinator's orders");
  if (const auto* apply = std::get_if<wire::ApplyOrder>(&order); apply && apply->group == 0 && checkpoints_)
    checkpoints_->on_update({apply->before.value + 1});
}

void Leader::deliver(const wire::DeliverOrder& order) {
  auto here = order;
  if (order.member.role == wire::Role::kWorker) {
    const WorkerId worker{order.member.index};
    send_initial_buffers(worker);
    here.reply.buffers = buffers_.is_requested(worker);
    if (started_at_ == TimePoint()) started_at_ = context_.loop.now();
  }
  const auto status = context_.shard.execute(here);
  CAPSTAN_CHECK(status.is_ok(), "the weights are initialized before they are delivered");
  if (order.member.role != wire::Role::kObserver || buffers_.is_empty()) return;
  buffers_.request(
      [this, member = order.member, request = order.reply.request](std::vector<float> mean) {
        const auto values = std::make_shared<std::vector<float>>(std::move(mean));
        if (auto* peer = context_.members.find(member))
          peer->channel().send(wire::Buffers{request}, *values, [values](Status) {});
      },
      context_.loop.now() + BufferAggregator::kTimeout);
}

void Leader::send_initial_buffers(WorkerId worker) {
  auto* peer = context_.members.find({wire::Role::kWorker, worker.value});
  if (!peer || !have_buffers_.insert(worker).second || buffers_.newest().empty()) return;
  const auto values = std::make_shared<std::vector<float>>(buffers_.newest());
  peer->channel().send(wire::Buffers{}, *values, [values](Status) {});
}

void Leader::begin_checkpoint() {
  const auto order = checkpoints_->begin(manifest(), options_.job.servers);
  context_.members.broadcast(wire::Role::kServer, order);
}

// ---- time and the end ----

void Leader::tick() {
  const auto now = context_.loop.now();
  run(coordinator_.tick(now));
  pass_on_pulls();
  buffers_.tick(now);
  if (now <= start_by_) return;
  for (const auto rank : coordinator_.missing()) member_ended(rank, {}, true);
}

void Leader::stop() {
  stopped_ = true;
  run(coordinator_.stop(context_.loop.now()));
  // Without local steps, workers learn it from the answer to their next push; with them, that may be far off.
  if (context_.shard.spec().first->local_steps().uses_local_steps())
    context_.members.broadcast(wire::Role::kWorker, wire::StopRequest{"stopped"});
}

void Leader::dismiss_workers() {
  for (std::uint32_t rank = 0; rank < options_.job.workers; ++rank) member_ended(rank, {}, false);
}

void Leader::check_end() {
  auto& lifecycle = context_.lifecycle;
  if (!lifecycle.is_open() || !coordinator_.finished()) return;
  if (checkpoints_) {
    const auto& checkpointer = checkpoints_->checkpointer();
    // The last version is saved, however the job ends.
    if (context_.shard.is_initialized() && !checkpointer.is_saving() &&
        !checkpointer.has_tried(coordinator_.version())) {
      checkpoints_->request();
      begin_checkpoint();
    }
    if (checkpointer.is_saving()) return lifecycle.enter(Phase::kSavingLast);  // checkpoint_done() follows
  }
  if (context_.members.has(wire::Role::kObserver)) return lifecycle.enter(Phase::kAwaitingObservers);
  context_.members.broadcast(wire::Role::kServer, wire::StopRequest{"finished"});
  lifecycle.drain(coordinator_.all_lost() ? Outcome::kAllWorkersLost : Outcome::kFinished);
}

void Leader::checkpoint_done() {
  const auto& checkpointer = checkpoints_->checkpointer();
  if (checkpointer.error().empty()) {
    context_.log->info(fmt::format("checkpoint of version {} written", checkpointer.newest().value));
  } else {
    context_.log->warn(fmt::format("cannot write a checkpoint: {}", checkpointer.error()));
  }
  check_end();
}

void Leader::ended(Outcome outcome) {
  if (!checkpoints_) return;
  try {
    const auto* why = outcome != Outcome::kFinished ? "lost" : stopped_ ? "stopped" : "finished";
    checkpoint::mark_finished(options_.checkpoints.run, coordinator_.version(), why);
  } catch (const UserError& error) {
    context_.log->warn(error.what());
  }
}

wire::StatusReport Leader::status() const {
  auto report = coordinator_.report();
  const auto last = context_.shard.last_update_at();
  report.seconds = last > started_at_ ? seconds(last - started_at_) : 0;
  for (std::size_t phase = 0; phase < push_bytes_.size(); ++phase)
    report.bytes_pushed += coordinator_.pushes()[phase] * push_bytes_[phase];
  report.bytes_pushed += coordinator_.pushed_row_bytes();
  report.bytes_pulled = coordinator_.pulls() * dense_bytes(context_.shard.layout(), context_.shard.groups()) +
                        coordinator_.pulled_row_bytes();
  if (checkpoints_) {
    const auto& checkpointer = checkpoints_->checkpointer();
    report.checkpoint = checkpointer.newest();
    report.checkpoint_error = checkpointer.error();
    report.saving = checkpointer.is_saving();
  }
  return report;
}

}  // namespace capstan::server
