// What a server does with the messages of its members, and with the leader's orders.

#include <fmt/format.h>

#include "capstan/placement/shards.h"
#include "capstan/server/server.h"

namespace capstan::server {

using wire::Role;

void Server::make_shard() {
  range_ = placement::split(layout_.size(), servers_)[index_.value];
  const auto parts = placement::group_ranges(layout_, spec_.groups_of(layout_), groups(), range_);
  const auto bytes = std::max<std::size_t>(range_.size() * sizeof(float), sizeof(float));
  weights_ = transport::Segment::create(bytes, transport::Segment::PeerMay::kRead);
  executor_ = std::make_unique<ShardExecutor>(
      loop_,
      std::make_unique<store::DenseShard>(weights_.floats().first(range_.size()), *optimizer_,
                                          spec_.needs_mean_square(), parts),
      options_.threads, options_.inline_elements);
}

// ---- payloads ----

Status Server::check_push(const Session& session, const wire::Push& push) const {
  const auto member = *session.member();
  if (member.role != Role::kWorker || push.worker.value != member.index) {
    return Status::malformed("a push in another worker's name");
  }
  const auto entry = entries_.find(member.index);
  if (entry == entries_.end() || entry->second.incarnation != push.incarnation) {
    return Status::malformed("a push of another incarnation");
  }
  const auto& worker = entry->second;
  if (push.sequence <= worker.staged) return Status::ok();
  if (!initialized_) return Status::malformed("a push before there are weights");
  if (push.sequence.value != worker.staged.value + 1) return Status::malformed("a push out of order");
  if (worker.in_use()) return Status::malformed("a push before the one before it was answered");
  return Status::ok();
}

transport::Placement Server::on_payload(Session& session, const wire::Message& message, std::size_t bytes) {
  using transport::Placement;
  const auto member = *session.member();
  if (!entry_of(member)) return Placement::refuse();
  if (std::holds_alternative<wire::Buffers>(message)) {
    if (!coordinator_ || bytes != buffers_.layout().size() * sizeof(float)) return Placement::refuse();
    auto& arriving = entries_.at(member.index).buffers.emplace_back(buffers_.layout().size());
    return Placement::receive(std::as_writable_bytes(std::span(arriving)));
  }
  if (bytes != range_.size() * sizeof(float)) return Placement::refuse();
  if (std::holds_alternative<wire::Initialize>(message)) {
    if (initialized_ || start_ != Version{})
      return Placement::discard();  // a checkpoint's are there, or come
    return Placement::receive(std::as_writable_bytes(executor_->shard().mutable_weights()));
  }
  const auto* push = std::get_if<wire::Push>(&message);
  if (!push || !check_push(session, *push).is_ok()) return Placement::refuse();
  auto& worker = entries_.at(member.index);
  if (worker.arena->shares_gradients()) return Placement::refuse();
  if (push->sequence <= worker.staged) return Placement::discard();
  return Placement::receive(std::as_writable_bytes(worker.arena->gradients()));
}

// ---- messages ----

void Server::on_message(Session& session, Arrival arrival) {
  const auto member = *session.member();
  Status status;
  if (std::holds_alternative<wire::Leave>(arrival.message) && member.role == Role::kWorker) {
    take_leave(session);
  } else if (member.role == Role::kWorker && !entry_of(member)) {
    status = Status::malformed(fmt::format("a {} after leaving", wire::name_of(arrival.message)));
  } else if (const auto* push = std::get_if<wire::Push>(&arrival.message)) {
    status = take(session, *push, arrival.payload_bytes);
  } else if (const auto* share = std::get_if<wire::Share>(&arrival.message)) {
    status = take(session, *share, std::move(arrival.segment));
  } else if (const auto* initialize = std::get_if<wire::Initialize>(&arrival.message)) {
    status = take(session, *initialize, arrival.payload_bytes);
  } else if (std::holds_alternative<wire::StatusRequest>(arrival.message)) {
    session.send(this->status());
  } else if (coordinator_) {
    status = take_as_leader(session, arrival.message);
  } else {
    status =
        Status::malformed(fmt::format("a {} at a server that does not lead", wire::name_of(arrival.message)));
  }
  if (!status.is_ok()) {
    log_->warn("{}: {}", session.connection().peer(), status.message());
    session.refuse(status.message());
  }
}

// A worker says it again where it did not hear the answer.
void Server::take_leave(Session& session) {
  const auto member = *session.member();
  dismiss(session);
  const auto entry = entries_.find(member.index);
  if (entry == entries_.end() || entry->second.session != &session) return;
  entry->second.session = nullptr;
  entry->second.leaving = true;
  if (coordinator_) member_gone(member, entry->second.incarnation, false);
}

void Server::dismiss(Session& session) {
  session.send(wire::Leave{});
  session.abandon();
}

Status Server::take(Session& session, const wire::Push& push, std::size_t payload_bytes) {
  if (auto bad = check_push(session, push); !bad.is_ok()) return bad;
  auto& worker = entries_.at(push.worker.value);
  if (push.sequence <= worker.staged && worker.staged_on == &session)
    return Status::ok();  // its answer comes, too
  worker.staged_on = &session;
  if (push.sequence > worker.staged) {
    const auto expected = worker.arena->shares_gradients() ? 0 : range_.size() * sizeof(float);
    if (payload_bytes != expected) return Status::malformed("a push with a payload of the wrong size");
    worker.staged = push.sequence;
  }
  if (coordinator_) {
    coordinator_->pushed(push);
  } else {
    leader_->send(wire::Staged{push.worker, push.incarnation, push.sequence});
  }
  return Status::ok();
}

Status Server::take(Session& session, const wire::Share& share, std::optional<transport::Segment> segment) {
  if (!segment || session.member()->role != Role::kWorker) return Status::malformed("a Share without memory");
  auto& arena = *entries_.at(session.member()->index).arena;
  return share.arena == wire::Arena::kGradients ? arena.take_gradients(std::move(*segment))
                                                : arena.take_weights(std::move(*segment));
}

Status Server::take(Session& session, const wire::Initialize&, std::size_t payload_bytes) {
  if (session.member()->role != Role::kWorker || payload_bytes != range_.size() * sizeof(float)) {
    return Status::malformed("initial weights without weights");
  }
  if (initialized_ || start_ != Version{}) return Status::ok();
  initialized_ = true;
  if (coordinator_) {
    coordinator_->initialized(ServerId{0});
  } else {
    leader_->send(wire::Initialized{});
  }
  return Status::ok();
}

Status Server::take_as_leader(Session& session, const wire::Message& message) {
  const auto member = *session.member();
  if (std::holds_alternative<wire::Buffers>(message) && member.role == Role::kWorker) {
    take_buffers(session);
    return Status::ok();
  }
  if (const auto* progress = std::get_if<wire::Progress>(&message);
      progress && member.role == Role::kWorker) {
    coordinator_->progressed({member.index}, *progress);
    return Status::ok();
  }
  if (const auto* pull = std::get_if<wire::Pull>(&message); pull && member.role != Role::kServer) {
    coordinator_->pull(member, *pull);
    return Status::ok();
  }
  if (member.role == Role::kObserver) {
    if (std::holds_alternative<wire::StopRequest>(message)) {
      stop();
      return Status::ok();
    }
    if (const auto* gone = std::get_if<wire::Gone>(&message); gone && gone->member.role == Role::kWorker) {
      member_gone(gone->member, gone->incarnation, gone->lost);
      return Status::ok();
    }
  }
  if (member.role == Role::kServer) {
    if (const auto* staged = std::get_if<wire::Staged>(&message)) {
      coordinator_->staged({member.index}, staged->worker, staged->incarnation, staged->sequence);
      return Status::ok();
    }
    if (const auto* written = std::get_if<wire::CheckpointWritten>(&message)) {
      if (!checkpointer_) return Status::malformed("a checkpoint that nobody ordered");
      std::vector<checkpoint::Piece> pieces;
      for (const auto& p : written->pieces)
        pieces.push_back({p.file, p.key, p.array, p.tensor, {p.begin, p.end}, p.checksum});
      checkpointer_->written(member.index, written->version, written->error, std::move(pieces));
      return Status::ok();
    }
    if (std::holds_alternative<wire::Initialized>(message)) {
      coordinator_->initialized({member.index});
      return Status::ok();
    }
    if (const auto* gone = std::get_if<wire::Gone>(&message); gone && gone->member.role == Role::kWorker) {
      member_gone(gone->member, gone->incarnation, gone->lost);
      return Status::ok();
    }
  }
  return Status::malformed(fmt::format("a {} that nobody asked for", wire::name_of(message)));
}

// ---- orders ----

void Server::issue(const Order& order) {
  std::visit(
      [&](const auto& o) {
        for (auto* s : sessions_of(Role::kServer)) s->send(o);
        carry_out(o);
      },
      order);
}

void Server::on_leader_order(const wire::Message& order) {
  if (const auto* apply = std::get_if<wire::ApplyOrder>(&order)) return carry_out(*apply);
  if (const auto* accumulate = std::get_if<wire::AccumulateOrder>(&order)) return carry_out(*accumulate);
  if (const auto* drop = std::get_if<wire::DropOrder>(&order)) return carry_out(*drop);
  if (const auto* deliver = std::get_if<wire::DeliverOrder>(&order)) return carry_out(*deliver);
  if (const auto* save = std::get_if<wire::CheckpointOrder>(&order)) return carry_out(*save);
  if (const auto* gone = std::get_if<wire::Gone>(&order))
    return forget_worker(gone->member.index, gone->incarnation, gone->lost);
  if (std::holds_alternative<wire::StopRequest>(order)) return end_when_idle(Outcome::kFinished);
  on_leader_lost(Status::malformed(fmt::format("it sent a {}", wire::name_of(order))));
}

Server::WorkerEntry* Server::holder_of(WorkerId worker, Sequence sequence) {
  const auto entry = entries_.find(worker.value);
  return entry == entries_.end() || entry->second.staged != sequence ? nullptr : &entry->second;
}

void Server::settle(WorkerId worker, Sequence sequence, std::uint32_t group) {
  if (auto* entry = holder_of(worker, sequence)) entry->settled[group] = sequence;
}

// Only a leader with a bug names a push that is not here, one that its group has had, or a sum of nothing.
void Server::carry_out(const wire::ApplyOrder& order) {
  if (order.group >= groups())
    return on_leader_lost(Status::malformed(fmt::format("it named group {} of {}", order.group, groups())));
  std::vector<optimizer::Contribution> contributions;
  std::vector<ShardExecutor::KeepAlive> owners;
  for (const auto& c : order.contributions) {
    const auto* worker = holder_of(c.worker, c.sequence);
    if (!worker || worker->settled[order.group] >= c.sequence)
      return on_leader_lost(
          Status::malformed(fmt::format("it named a push of worker {} that is not here", c.worker.value)));
    const auto base = worker->arena->delivered();
    contributions.push_back({worker->arena->gradients().data(), c.factor, base.get()});
    owners.push_back(worker->arena);
    owners.push_back(base);
  }
  if ((contributions.empty() && !order.accumulated) || (order.accumulated && !has_accumulated_))
    return on_leader_lost(Status::malformed("it ordered an update of nothing"));
  const UpdateRule rule{order.rule, order.rate, order.strength};
  const bool adapts = rule.kind == UpdateRule::Kind::kCompensateAdaptive;
  const bool compensates = adapts || rule.kind == UpdateRule::Kind::kCompensate;
  if ((compensates && contributions.size() != 1) || (adapts && !spec_.needs_mean_square()))
    return on_leader_lost(Status::malformed("it ordered an update that this job's strategy does not make"));
  executor_->apply(order.group, {order.before, order.scheduled}, rule, std::move(contributions),
                   order.accumulated, std::move(owners), [this, order] {
                     last_update_at_ = SteadyClock::now();
                     for (const auto& c : order.contributions) settle(c.worker, c.sequence, order.group);
                     if (coming_) end_when_idle(*coming_);
                   });
  if (order.group == 0) note_update({order.before.value + 1});
}

void Server::carry_out(const wire::AccumulateOrder& order) {
  if (groups() > 1) return on_leader_lost(Status::malformed("it folds a push of a job with groups"));
  const auto& c = order.contribution;
  const auto* worker = holder_of(c.worker, c.sequence);
  if (!worker || (!has_accumulated_ && !order.first))
    return on_leader_lost(Status::malformed("it folds a push that is not here"));
  has_accumulated_ = true;
  executor_->accumulate({worker->arena->gradients().data(), c.factor}, order.first, worker->arena, [this, c] {
    settle(c.worker, c.sequence, 0);
    if (coming_) end_when_idle(*coming_);
  });
}

void Server::carry_out(const wire::DropOrder& order) {
  if (order.group >= groups())
    return on_leader_lost(Status::malformed(fmt::format("it named group {} of {}", order.group, groups())));
  settle(order.worker, order.sequence, order.group);
}

void Server::carry_out(const wire::DeliverOrder& order) {
  if (!initialized_)
    return on_leader_lost(Status::malformed("it ordered a delivery before there were weights"));
  if (order.member.role == Role::kObserver) return deliver_to_observer(order.member, order.reply);
  const auto entry = entries_.find(order.member.index);
  // A worker whose connection is broken asks again when it is back.
  if (entry != entries_.end() && entry->second.session) {
    auto reply = order.reply;
    if (coordinator_) {
      greet(entry->second);
      reply.buffers = buffers_.wants({order.member.index});
    }
    deliver_to_worker(entry->second, reply);
  }
  if (started_at_ == TimePoint()) started_at_ = SteadyClock::now();
}

void Server::deliver_to_worker(WorkerEntry& worker, const wire::Weights& reply) {
  const wire::Member member = *worker.session->member();
  const auto arena = worker.arena;
  if (in_place_) {
    return executor_->deliver(nullptr, arena, [this, member, reply] {
      auto* session = session_of(member);
      if (!session) return;
      if (session->shares_memory()) return session->send(reply);
      executor_->pin();
      session->send(reply, executor_->shard().weights(), [this](Status) { executor_->unpin(); });
    });
  }
  if (arena->shares_weights()) {
    return executor_->deliver(arena->shared_weights().data(), arena, [this, member, reply] {
      if (auto* session = session_of(member)) session->send(reply);
    });
  }
  const auto copy = arena->outgoing_weights();
  executor_->deliver(copy.get(), copy, [this, member, reply, copy] {
    if (auto* session = session_of(member))
      session->send(reply, {copy.get(), range_.size()}, [copy](Status) {});
  });
}

void Server::deliver_to_observer(const wire::Member& member, const wire::Weights& reply) {
  const auto copy = std::make_shared<std::vector<float>>(range_.size());
  executor_->deliver(copy->data(), copy, [this, member, copy, reply] {
    if (auto* session = session_of(member)) session->send(reply, *copy, [copy](Status) {});
  });
  if (!coordinator_ || buffers_.is_empty()) return;
  buffers_.want([this, member, request = reply.request](std::vector<float> mean) {
    const auto values = std::make_shared<std::vector<float>>(std::move(mean));
    if (auto* session = session_of(member))
      session->send(wire::Buffers{request}, *values, [values](Status) {});
  });
}

}  // namespace capstan::server
