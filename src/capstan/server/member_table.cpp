#include "capstan/server/member_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/logger.h>

namespace capstan::server {
namespace {

constexpr std::uint64_t kTicksPerHeartbeat = 2;
constexpr std::ptrdiff_t kMaxUnjoined = 64;  // connections that have not joined

}  // namespace

using wire::Role;

std::string describe(const wire::Member& member) {
  constexpr const char* kRoles[] = {"worker", "observer", "server"};
  return fmt::format("{} {}", kRoles[static_cast<int>(member.role)], member.index);
}

Peer::Peer(std::unique_ptr<transport::Connection> connection, const cluster::Token& token, TimePoint now,
           Events& events)
    : events_(events),
      opened_at_(now),
      channel_(cluster::Channel::Side::kAccepting, std::move(connection), token, *this) {}

transport::Placement Peer::on_payload(cluster::Channel&, const wire::Message& message, std::size_t bytes) {
  return member_ ? events_.on_payload(*this, message, bytes) : transport::Placement::refuse();
}

void Peer::on_message(cluster::Channel&, cluster::Arrival arrival) {
  if (const auto* join = std::get_if<wire::Join>(&arrival.message)) {
    if (member_) return channel_.end(Status::malformed("received a second Join"));
    return events_.on_join(*this, *join);
  }
  if (!member_)
    return channel_.end(
        Status::malformed(fmt::format("received {} before Join", wire::name_of(arrival.message))));
  events_.on_message(*this, std::move(arrival));
}

MemberTable::MemberTable(transport::EventLoop& loop, Options options, std::shared_ptr<spdlog::logger> log,
                         Events& events)
    : loop_(loop),
      options_(std::move(options)),
      log_(std::move(log)),
      events_(events),
      pauses_(kTick, loop.now()) {}

MemberTable::~MemberTable() {
  if (destroying_) loop_.cancel(*destroying_);
}

void MemberTable::accept(std::unique_ptr<transport::Connection> connection) {
  bound_unjoined();
  Peer::Events& events = *this;
  unjoined_.push_back(std::make_unique<Peer>(std::move(connection), options_.token, loop_.now(), events));
}

// Ends the oldest connection that has not joined; one that has not proved the token before one that has.
void MemberTable::bound_unjoined() {
  const auto is_open = [](const auto& peer) { return !peer->channel().has_ended(); };
  if (std::ranges::count_if(unjoined_, is_open) < kMaxUnjoined) return;
  auto oldest = std::ranges::find_if(
      unjoined_, [&](const auto& peer) { return is_open(peer) && !peer->channel().is_trusted(); });
  if (oldest == unjoined_.end()) oldest = std::ranges::find_if(unjoined_, is_open);
  (*oldest)->channel().end(Status::timeout("too many connections that have not joined"));
}

void MemberTable::close(Peer& peer) {
  peer.channel().close();
  destroy_ended_soon();
}

void MemberTable::destroy_ended_soon() {
  if (destroying_) return;
  destroying_ = loop_.call_at(loop_.now(), [this] {
    destroying_.reset();
    const auto has_ended = [](const auto& peer) { return peer->channel().has_ended(); };
    std::erase_if(unjoined_, has_ended);
    std::erase_if(joined_, has_ended);
  });
}

void MemberTable::bind(Peer& peer, const wire::Member& member, Incarnation incarnation) {
  if (auto* old = find(member)) close(*old);  // broken, but not detected yet
  peer.set_member(member, incarnation);
  joined_.splice(joined_.end(), unjoined_, std::ranges::find(unjoined_, &peer, &std::unique_ptr<Peer>::get));
  connected_[member] = &peer;
  log_->debug(fmt::format("{} joined from {}", describe(member), peer.channel().peer()));
  if (member.role != Role::kWorker) return;
  const auto known = workers_.find(member.index);
  // A leaving worker reconnects only for the confirmation of its Leave.
  if (known != workers_.end() && known->second.incarnation == incarnation &&
      known->second.state == WorkerState::kLeaving)
    return;
  workers_[member.index] = {incarnation};
}

void MemberTable::dismiss(Peer& peer) {
  const auto member = *peer.member();
  peer.channel().send(wire::Leave{});
  close(peer);
  connected_.erase(member);
  if (const auto worker = workers_.find(member.index); worker != workers_.end())
    worker->second.state = WorkerState::kLeaving;
}

void MemberTable::forget(std::uint32_t rank, Incarnation incarnation, bool lost) {
  const auto worker = workers_.find(rank);
  if (worker == workers_.end() || worker->second.incarnation != incarnation) return;
  workers_.erase(worker);  // first: the end of its connection must not find it
  auto* peer = find({Role::kWorker, rank});
  if (!peer) return;
  connected_.erase(*peer->member());
  if (lost) return peer->channel().refuse("the servers have declared this worker lost");
  peer->channel().send(wire::Leave{});
  close(*peer);
}

void MemberTable::close() {
  for (auto* peers : {&unjoined_, &joined_}) {
    for (const auto& peer : *peers) peer->channel().close();
  }
}

Peer* MemberTable::find(const wire::Member& member) {
  const auto found = connected_.find(member);
  return found == connected_.end() ? nullptr : found->second;
}

Peer* MemberTable::find(const wire::Member& member, Incarnation incarnation) {
  auto* peer = find(member);
  return peer && peer->incarnation() == incarnation ? peer : nullptr;
}

void MemberTable::send(const wire::Member& member, const wire::Message& message) {
  if (auto* peer = find(member)) peer->channel().send(message);
}

void MemberTable::broadcast(Role role, const wire::Message& message) {
  for (const auto& [member, peer] : connected_) {
    if (member.role == role) peer->channel().send(message);
  }
}

bool MemberTable::has(Role role) const {
  return std::ranges::any_of(connected_, [&](const auto& entry) { return entry.first.role == role; });
}

std::optional<Incarnation> MemberTable::incarnation(std::uint32_t rank) const {
  const auto worker = workers_.find(rank);
  return worker == workers_.end() ? std::optional<Incarnation>() : worker->second.incarnation;
}

std::vector<std::uint32_t> MemberTable::doubtful() const {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, worker] : workers_) {
    const auto peer = connected_.find({Role::kWorker, rank});
    if (peer == connected_.end() || peer->second->channel().is_silent(loop_.now(), options_.silence / 2))
      ranks.push_back(rank);
  }
  return ranks;
}

bool MemberTable::takes_part(const wire::Member& member) const {
  if (member.role != Role::kWorker) return true;
  const auto worker = workers_.find(member.index);
  return worker != workers_.end() && worker->second.state != WorkerState::kLeaving;
}

transport::Placement MemberTable::on_payload(Peer& peer, const wire::Message& message, std::size_t bytes) {
  return takes_part(*peer.member()) ? events_.on_payload(peer, message, bytes)
                                    : transport::Placement::refuse();
}

void MemberTable::on_message(Peer& peer, cluster::Arrival arrival) {
  if (!takes_part(*peer.member()) && !std::holds_alternative<wire::Leave>(arrival.message))
    return peer.channel().refuse(fmt::format("received {} after Leave", wire::name_of(arrival.message)));
  events_.on_message(peer, std::move(arrival));
}

void MemberTable::on_end(Peer& peer, Status why) {
  destroy_ended_soon();
  if (!peer.member()) {
    log_->debug(fmt::format("{}: {}", peer.channel().peer(), why.message()));
    return;
  }
  const auto member = *peer.member();
  if (find(member) != &peer) return;
  connected_.erase(member);
  if (member.role != Role::kWorker) return events_.on_lost(member, {}, why);
  const auto worker = workers_.find(member.index);
  if (worker == workers_.end() || worker->second.state == WorkerState::kLeaving) return;
  worker->second.state = WorkerState::kBroken;
  worker->second.broken_at = loop_.now();
  // On one host a connection ends only with its process; a network connection may be restored.
  const bool may_return = why.code() == StatusCode::kClosed && !peer.channel().shares_memory();
  if (!may_return) lose_worker(member.index, why);
}

void MemberTable::lose_worker(std::uint32_t rank, const Status& why) {
  log_->warn(fmt::format("worker {} is lost: {}", rank, why.message()));
  auto& worker = workers_.at(rank);
  worker.state = WorkerState::kLost;
  events_.on_lost({Role::kWorker, rank}, worker.incarnation, why);
}

void MemberTable::tick() {
  const auto now = loop_.now();
  const auto running_since = pauses_.running_since(now);
  check_silence(now, running_since);
  give_up_broken(now, running_since);
  // Not as answers: a client whose own heartbeats wait behind a long payload needs them all the same.
  if (++ticks_ % kTicksPerHeartbeat == 0) {
    for (const auto& [member, peer] : connected_) peer->channel().send(wire::Heartbeat{});
  }
}

void MemberTable::check_silence(TimePoint now, TimePoint running_since) {
  for (const auto& peer : unjoined_) {
    // Since the connection opened, not since the last byte: single bytes must not extend the timeout.
    if (now - std::max(peer->opened_at(), running_since) > options_.handshake)
      peer->channel().refuse(fmt::format("no Join within {:g} s", seconds(options_.handshake)));
  }
  for (const auto& peer : joined_) {
    auto& channel = peer->channel();
    const bool observes = peer->member()->role == Role::kObserver;
    if (channel.is_silent(now, observes ? options_.observer_silence : options_.silence, running_since))
      channel.refuse(fmt::format("no heartbeat for {:.1f} s", seconds(now - channel.last_heard())));
  }
}

void MemberTable::give_up_broken(TimePoint now, TimePoint running_since) {
  std::vector<std::uint32_t> given_up;
  for (const auto& [rank, worker] : workers_) {
    const auto since = std::max(worker.broken_at, running_since);
    if (worker.state == WorkerState::kBroken && now - since >= options_.reconnect) given_up.push_back(rank);
  }
  for (const auto rank : given_up) {
    if (workers_.contains(rank))
      lose_worker(rank, Status::closed(fmt::format("its connection broke and was not restored within {:g} s",
                                                   seconds(options_.reconnect))));
  }
}

}  // namespace capstan::server
