#include "capstan/server/server.h"

#include <new>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "capstan/metrics/process_usage.h"

namespace capstan::server {
namespace {

std::unique_ptr<Role> make_role(const RoleContext& context, const ServerOptions& o) {
  constexpr auto kLeaderRetry = std::chrono::milliseconds(100);
  if (!o.connect_to_leader)
    return std::make_unique<Leader>(context, LeaderOptions{o.job, o.optimizer, o.schedule, o.join_timeout,
                                                           o.checkpoints, o.resume, o.description});
  return std::make_unique<Follower>(context, FollowerOptions{{.token = o.members.token,
                                                              .silence = o.members.silence,
                                                              .retry = kLeaderRetry,
                                                              .attempt_timeout = o.members.handshake},
                                                             o.connect_to_leader,
                                                             o.join_timeout});
}

}  // namespace

Server::Server(transport::EventLoop& loop, const ServerOptions& options, std::shared_ptr<spdlog::logger> log)
    : loop_(loop),
      log_(std::move(log)),
      members_(loop, options.members, log_, *this),
      shard_(
          loop,
          {options.optimizer, options.schedule, options.threads, options.inline_elements, options.observer},
          members_, [this] { lifecycle_.settle(); }),
      writer_(loop, shard_),
      lifecycle_([this] { return shard_.is_idle(); },
                 [this](Outcome outcome) {
                   if (role_) role_->ended(outcome);  // null if the role's constructor ends the job
                   loop_.wake();
                 }),
      role_(make_role({loop, members_, shard_, writer_, lifecycle_, log_}, options)) {
  tick();
}

Server::~Server() {
  if (timer_) loop_.cancel(*timer_);
  // Connections release memory of the other parts when they end, so they end first; abandon() keeps
  // this from starting an update.
  shard_.abandon();
  members_.close();
}

wire::StatusReport Server::status() const {
  auto report = role_->status();
  const auto usage = metrics::process_usage();
  report.rss_bytes = usage.private_bytes + (shard_.is_initialized() ? shard_.segment().size() : 0);
  report.cpu_seconds = usage.cpu_seconds;
  return report;
}

void Server::on_join(Peer& peer, const wire::Join& join) {
  const auto admitted = role_->admit(join);
  if (!admitted) {
    const auto status = admitted.status();
    if (status.code() == StatusCode::kUnavailable) return peer.channel().end(status);
    log_->warn(fmt::format("refused {}: {}", peer.channel().peer(), status.message()));
    return peer.channel().refuse(status.message());
  }
  const auto member = *admitted;
  members_.bind(peer, member, join.incarnation);
  auto joined = to_joined(shard_.terms(), member, shard_.range());
  if (member.role != wire::Role::kWorker && shard_.has_model()) describe_model(shard_.model(), joined);
  const bool is_new =
      member.role != wire::Role::kWorker || shard_.staging().join({member.index}, join.incarnation);
  role_->joined(member, is_new);
  if (member.role == wire::Role::kWorker && joined.in_place && peer.channel().shares_memory()) {
    peer.channel().send(joined, shard_.segment());
  } else {
    peer.channel().send(joined);
  }
}

transport::Placement Server::on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) {
  const auto placement = [&]() -> Result<transport::Placement> {
    try {
      return place(*peer.member(), message, bytes);
    } catch (const std::bad_alloc&) {
      return Status::refused(
          fmt::format("not enough memory for {} with {} bytes", wire::name_of(message), bytes));
    }
  }();
  if (placement) return *placement;
  refuse(peer, placement.status());
  return transport::Placement::refuse();
}

Result<transport::Placement> Server::place(const wire::Member& member, const wire::Message& message,
                                           std::size_t bytes) {
  if (member.role == wire::Role::kWorker) {
    if (const auto* push = std::get_if<wire::Push>(&message))
      return shard_.staging().place({member.index}, *push, bytes);
    if (std::holds_alternative<wire::Initialize>(message)) {
      if (!role_->expects_initial({member.index}))
        return Status::malformed("received initial weights that were not requested");
      return shard_.place_initial({member.index}, bytes);
    }
  }
  return role_->place(member, message, bytes);
}

void Server::on_message(Peer& peer, cluster::Arrival arrival) {
  const auto member = *peer.member();
  if (const auto* leave = std::get_if<wire::Leave>(&arrival.message);
      leave && member.role == wire::Role::kWorker)
    return take_leave(peer, *leave);
  if (std::holds_alternative<wire::StatusRequest>(arrival.message)) return peer.channel().send(status());
  if (const auto bad = take(member, arrival); !bad.is_ok()) refuse(peer, bad);
}

void Server::refuse(Peer& peer, const Status& why) {
  log_->warn(fmt::format("{}: {}", peer.channel().peer(), why.message()));
  peer.channel().refuse(why.message());
}

Status Server::take(const wire::Member& member, cluster::Arrival& arrival) {
  if (member.role != wire::Role::kWorker) return role_->take(member, arrival.message);
  const WorkerId worker{member.index};
  if (const auto* push = std::get_if<wire::Push>(&arrival.message)) {
    const auto staged = shard_.stage(worker, *push, arrival.payload_bytes);
    if (!staged) return staged.status();
    if (*staged) role_->pushed(*push);
    return Status::ok();
  }
  if (const auto* share = std::get_if<wire::Share>(&arrival.message)) {
    if (!arrival.segment) return Status::malformed("received Share without a segment");
    return shard_.staging().share(worker, *share, std::move(*arrival.segment));
  }
  if (std::holds_alternative<wire::Initialize>(arrival.message))
    return take_initial(worker, arrival.payload_bytes);
  return role_->take(member, arrival.message);
}

Status Server::take_initial(WorkerId worker, std::size_t payload_bytes) {
  if (payload_bytes != shard_.range().size() * sizeof(float))
    return Status::malformed("initial weights of the wrong size");
  if (!shard_.take_initial(worker)) return Status::ok();
  if (lifecycle_.phase() == Phase::kAwaitingWeights) lifecycle_.enter(Phase::kServing);
  role_->initialized();
  return Status::ok();
}

// A worker repeats its Leave if the confirmation was lost.
void Server::take_leave(Peer& peer, const wire::Leave& leave) {
  const auto rank = peer.member()->index;
  const auto incarnation = members_.incarnation(rank);
  members_.dismiss(peer);
  if (incarnation) role_->left(rank, *incarnation, leave);
}

void Server::on_lost(const wire::Member& member, Incarnation incarnation, const Status& why) {
  role_->lost(member, incarnation, why);
}

void Server::tick() {
  members_.tick();
  role_->tick();
  lifecycle_.settle();
  timer_ = loop_.call_at(loop_.now() + MemberTable::kTick, [this] { tick(); });
}

}  // namespace capstan::server
