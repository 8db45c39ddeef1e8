#include "capstan/server/server.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/metrics/process_usage.h"

namespace capstan::server {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr std::uint64_t kTicksPerBeat = 2;
constexpr auto kLeaderRetry = std::chrono::milliseconds(100);
constexpr std::size_t kMaxStrangers = 64;  // connections that have not joined

std::string describe(const wire::Member& member) {
  constexpr const char* kRoles[] = {"worker", "observer", "server"};
  return fmt::format("{} {}", kRoles[static_cast<int>(member.role)], member.index);
}

wire::LocalOptimizer local_optimizer(const optimizer::Options& o, const optimizer::Schedule& s) {
  wire::LocalOptimizer message{std::string(optimizer::name(o.kind)), {}, s.text(), s.warmup, s.total};
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, const auto& value) {
        message.options.push_back({std::string(option.name), static_cast<double>(value)});
      },
      o);
  return message;
}

}  // namespace

using wire::Role;

Server::Server(transport::EventLoop& loop, const ServerOptions& options, std::shared_ptr<spdlog::logger> log)
    : loop_(loop),
      options_(options),
      log_(std::move(log)),
      servers_(options.job.servers),
      workers_(options.job.workers),
      opened_at_(SteadyClock::now()),
      last_tick_(opened_at_) {
  if (options_.leads) {
    coordinator_.emplace(options_.job,
                         Coordinator::Outbox{[this](const Order& order) { issue(order); },
                                             [this](WorkerId worker) {
                                               if (auto* s = session_of({Role::kWorker, worker.value}))
                                                 s->send(wire::SendWeights{});
                                             },
                                             [this] { order_checkpoint(); }});
    know_strategy(options_.job.strategy);
    in_place_ = spec_.workers_idle_during_update();
    if (options_.resume) begin_from(options_.resume->folder, options_.resume->manifest);
    if (options_.checkpoints.is_on()) {
      background_ = make_background();
      checkpointer_ = std::make_unique<checkpoint::Checkpointer>(options_.checkpoints, start_, *background_,
                                                                 [this] { checkpoint_done(); });
      checkpoint::mark_running(options_.checkpoints.run);
    }
  }
  loop_.allow_spinning(workers_ + servers_);
  tick();
}

Server::~Server() {
  if (timer_) loop_.cancel(*timer_);
  if (retry_) loop_.cancel(*retry_);
  // Connections that end below hand back pinned weights; no update may start from that.
  if (executor_) executor_->abandon();
}

// The servers' optimizer is the job's unless workers train by themselves: then it is theirs, and the servers
// make outer steps of deltas, or have no part of their own.
void Server::know_strategy(const std::string& spelling) {
  spec_ = strategy::parse_strategy_spec(spelling, workers_);
  uses_local_steps_ = spec_.first->local_steps().uses_local_steps();
  auto rule = options_.optimizer;
  auto schedule = options_.schedule;
  if (uses_local_steps_) {
    const auto outer = spec_.first->outer().value_or(strategy::OuterStep{});
    rule = optimizer::outer(outer.rate, outer.momentum);
    schedule = {};
  }
  optimizer_ = std::make_unique<const optimizer::Optimizer>(rule, schedule);
}

void Server::accept(std::unique_ptr<transport::Connection> connection) {
  const auto strangers =
      std::ranges::count_if(sessions_, [](const auto& s) { return !s->ended() && !s->member(); });
  if (static_cast<std::size_t>(strangers) >= kMaxStrangers) {
    // The oldest has had time enough: nobody who knows the token needs more than a moment.
    const auto oldest =
        std::ranges::find_if(sessions_, [](const auto& s) { return !s->ended() && !s->member(); });
    (*oldest)->end(Status::timeout("too many strangers at the door"));
  }
  SessionEvents& events = *this;
  sessions_.push_back(std::make_unique<Session>(std::move(connection), options_.token, events));
}

void Server::follow(Connect connect) {
  connect_to_leader_ = std::move(connect);
  seek_leader();
}

void Server::seek_leader() {
  auto connection = connect_to_leader_();
  if (!connection) return on_leader_lost(connection.status());
  LeaderLink::Events& events = *this;
  leader_ = std::make_unique<LeaderLink>(std::move(*connection), options_.token, events);
}

std::span<const float> Server::weights() const {
  return initialized_ ? executor_->shard().weights() : std::span<const float>();
}

void Server::stop() {
  if (!coordinator_) return;
  coordinator_->stop();
  // The others learn it with the answer to their next push, which may be far off here.
  if (!uses_local_steps_) return;
  for (auto* s : sessions_of(Role::kWorker)) s->send(wire::StopRequest{"stopped"});
}

wire::StatusReport Server::status() const {
  wire::StatusReport report;
  if (coordinator_) {
    report = coordinator_->report();
    report.seconds = last_update_at_ > started_at_ ? seconds(last_update_at_ - started_at_) : 0;
    report.bytes_pushed = coordinator_->pushes() * layout_.bytes();
    report.bytes_pulled = coordinator_->pulls() * layout_.bytes();
  }
  if (checkpointer_) {
    report.checkpoint = checkpointer_->newest();
    report.checkpoint_error = checkpointer_->error();
    report.saving = checkpointer_->is_saving();
  }
  const auto usage = metrics::process_usage();
  report.rss_bytes = usage.private_bytes + (initialized_ ? weights_.size() : 0);
  report.cpu_seconds = usage.cpu_seconds;
  return report;
}

std::vector<Session*> Server::sessions_of(Role role) {
  std::vector<Session*> found;
  for (auto& session : sessions_) {
    if (!session->ended() && session->member() && session->member()->role == role)
      found.push_back(session.get());
  }
  return found;
}

Session* Server::session_of(const wire::Member& member) {
  for (auto& session : sessions_) {
    if (!session->ended() && session->member() == member) return session.get();
  }
  return nullptr;
}

Server::WorkerEntry* Server::entry_of(const wire::Member& member) {
  const auto entry = entries_.find(member.index);
  return member.role == Role::kWorker && entry != entries_.end() && !entry->second.leaving ? &entry->second
                                                                                           : nullptr;
}

// ---- joining ----

// Unavailable means not yet: the client is to try again.
Status Server::admit(const wire::Join& join, wire::Member& member) {
  if (!options_.leads && !joined_)
    return Status::unavailable("this server has not reached the first one yet");
  std::optional<FlatLayout> layout;
  if (join.role == Role::kWorker) {
    auto decoded = wire::from_wire(join.layout);
    if (!decoded) return decoded.status();
    if (layout_.size() > 0) {
      if (const auto difference = layout_.difference(*decoded); !difference.empty()) {
        return Status::refused("the worker's model differs from the server's (here): " + difference);
      }
    } else {
      layout = std::move(*decoded);
      try {
        (void)spec_.groups_of(*layout);
      } catch (const UserError& error) {
        return Status::refused(error.what());
      }
    }
  }
  if (coordinator_ && join.role == Role::kWorker) {
    if (auto bad = check_data(join); !bad.is_ok()) return bad;
  }
  if (coordinator_) {
    const auto admitted = coordinator_->admit(join.role, join.index, join.incarnation);
    if (!admitted) return admitted.status();
    member = *admitted;
  } else {
    if (!join.index || join.role == Role::kServer ||
        (join.role == Role::kWorker && *join.index >= workers_)) {
      return Status::refused("join the first server first: it gives out the places");
    }
    member = {join.role, *join.index};
    const auto entry = entries_.find(member.index);
    if (join.role == Role::kWorker && entry != entries_.end() &&
        entry->second.incarnation != join.incarnation) {
      return Status::unavailable("this server has not heard yet that the worker before is lost");
    }
  }
  if (layout) {
    layout_ = std::move(*layout);
    try {
      make_shard();
    } catch (const UserError& error) {  // no memory for so large a model
      layout_ = FlatLayout();
      if (coordinator_) coordinator_->gone(member, true);
      return Status::refused(error.what());
    }
  }
  if (coordinator_ && join.role == Role::kWorker) agree_on_data(join);
  return Status::ok();
}

void Server::on_join(Session& session, const wire::Join& join) {
  wire::Member member;
  if (const auto status = admit(join, member); !status.is_ok()) {
    if (status.code() == StatusCode::kUnavailable) return session.end(status);
    log_->warn("refused {}: {}", session.connection().peer(), status.message());
    return session.refuse(status.message());
  }
  if (auto* old = session_of(member)) old->abandon();  // the end of its connection before was not noticed yet
  session.set_member(member);
  log_->debug("{} joined from {}", describe(member), session.connection().peer());
  wire::Joined joined;
  joined.member = member;
  joined.server = index_;
  joined.servers = servers_;
  joined.workers = workers_;
  joined.begin = range_.begin;
  joined.end = range_.end;
  joined.strategy = spec_.spelling();
  joined.in_place = in_place_;
  joined.start = start_;
  for (const auto& segment : segments_) joined.segments.push_back({segment.batch, segment.steps});
  if (options_.resume) joined.checkpoint = std::filesystem::absolute(options_.resume->folder).string();
  if (uses_local_steps_) joined.local = local_optimizer(options_.optimizer, options_.schedule);
  if (member.role == Role::kWorker) return welcome_worker(session, join, joined);
  if (member.role == Role::kObserver && layout_.size() > 0) joined.layout = wire::to_wire(layout_);
  session.send(joined);
}

void Server::welcome_worker(Session& session, const wire::Join& join, const wire::Joined& joined) {
  auto& entry = entries_[joined.member.index];
  const bool comes_back = entry.arena && entry.incarnation == join.incarnation;
  if (!comes_back) {
    entry = WorkerEntry{};
    entry.incarnation = join.incarnation;
    entry.arena = std::make_shared<WorkerArena>(range_, layout_.size());
    buffers_.joined({joined.member.index});
    entry.settled.resize(groups());
    for (const auto& mark : marks_) {
      if (mark.worker.value == joined.member.index && mark.incarnation == join.incarnation)
        entry.settled[mark.group] = mark.sequence;
    }
    entry.staged = std::ranges::min(entry.settled);  // what some groups lack comes again
  }
  entry.greeted = false;
  entry.buffers.clear();
  entry.session = &session;
  entry.staged_on = nullptr;
  if (session.shares_memory() && in_place_) {
    session.send(joined, weights_);
  } else {
    session.send(joined);
  }
}

// ---- members that end ----

void Server::on_end(Session& session, Status why) {
  if (!session.member()) {
    log_->debug("{}: {}", session.connection().peer(), why.message());
    return;
  }
  const auto member = *session.member();
  if (member.role == Role::kServer) {
    if (outcome_ == Outcome::kRunning && !coordinator_->finished()) {
      log_->error("{} is lost ({}): the job cannot go on", describe(member), why.message());
      end(Outcome::kFollowerLost);
    }
    if (checkpointer_) checkpointer_->lost(member.index);
    return;
  }
  if (member.role == Role::kObserver) {
    if (coordinator_) coordinator_->gone(member, true);
    return check_end();
  }
  const auto entry = entries_.find(member.index);
  if (entry == entries_.end() || entry->second.session != &session) return;
  entry->second.session = nullptr;
  entry->second.broken_at = SteadyClock::now();
  // On one host a connection ends only with its process; a network may come back.
  const bool may_return = why.code() == StatusCode::kClosed && !session.shares_memory();
  if (!may_return) {
    log_->warn("{} is lost: {}", describe(member), why.message());
    member_gone(member, entry->second.incarnation, true);
  }
}

void Server::member_gone(const wire::Member& member, Incarnation incarnation, bool lost) {
  if (leader_)
    return leader_->send(wire::Gone{member, incarnation, lost});  // the leader answers with its own Gone
  if (member.index >= workers_) return;
  const auto current = coordinator_->incarnation(member.index);
  if (incarnation != Incarnation{} && incarnation != current) {
    // Late news of an earlier life: nothing new here, but whoever still has something of it may let go.
    for (auto* s : sessions_of(Role::kServer)) s->send(wire::Gone{member, incarnation, lost});
    return;
  }
  coordinator_->gone(member, lost);
  buffers_.gone({member.index}, lost);
  for (auto* s : sessions_of(Role::kServer)) s->send(wire::Gone{member, current, lost});
  forget_worker(member.index, current, lost);
  check_end();
}

void Server::forget_worker(std::uint32_t rank, Incarnation incarnation, bool lost) {
  const auto entry = entries_.find(rank);
  if (entry == entries_.end() || entry->second.incarnation != incarnation) return;
  // Out of the map first, so that the session's end finds nothing; the memory goes last, because a payload
  // may still be on its way into it.
  const auto worker = std::move(entry->second);
  entries_.erase(entry);
  if (!worker.session) return;
  if (lost) {
    worker.session->refuse("the other parts of the job consider this worker lost");
  } else {
    dismiss(*worker.session);
  }
}

void Server::tick() {
  const auto now = SteadyClock::now();
  // After a pause of this process itself nobody had a chance to be heard: look again at the next tick.
  if (now - last_tick_ < 3 * kTick) check_silence(now);
  last_tick_ = now;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto& [rank, entry] = *it++;
    if (entry.session || entry.leaving || now - entry.broken_at < options_.reconnect) continue;
    log_->warn("worker {} is lost: its connection broke and did not come back", rank);
    member_gone({Role::kWorker, rank}, entry.incarnation, true);
    break;  // the map has changed; the rest comes with the next tick
  }
  if (coordinator_) coordinator_->tick();
  if (coordinator_ && now - opened_at_ > options_.join_timeout) {
    for (const auto rank : coordinator_->missing()) member_gone({Role::kWorker, rank}, {}, true);
  }
  if (leader_ && joined_) leader_->send(wire::Heartbeat{});
  // Unasked: a client whose own heartbeats wait behind a long payload must hear of us all the same.
  if (++ticks_ % kTicksPerBeat == 0) {
    for (const auto& s : sessions_) {
      if (s->member() && !s->ended()) s->send(wire::Heartbeat{});
    }
  }
  std::erase_if(sessions_, [](const auto& s) { return s->ended(); });
  if (coming_ && outcome_ == Outcome::kRunning) end_when_idle(*coming_);
  timer_ = loop_.call_at(now + kTick, [this] { tick(); });
}

void Server::check_silence(TimePoint now) {
  for (auto& session : sessions_) {
    if (session->ended()) continue;
    if (!session->member()) {
      if (now - session->last_heard() > options_.handshake)
        session->refuse(fmt::format("no Join within {:g} s", seconds(options_.handshake)));
    } else if (session->is_silent(now, session->member()->role == Role::kObserver ? options_.observer_silence
                                                                                  : options_.silence)) {
      const auto why = fmt::format("no sign of life for {:.1f} s", seconds(now - session->last_heard()));
      session->refuse(why);
    }
  }
  if (leader_ && now - leader_->last_heard() > (joined_ ? options_.silence : options_.handshake)) {
    leader_->fail(Status::timeout("no sign of life"));
  }
}

void Server::check_end() {
  if (!coordinator_ || outcome_ != Outcome::kRunning || coming_ || !coordinator_->finished()) return;
  if (checkpointer_) {
    const auto version = coordinator_->version();
    // What was reached is kept, whatever brought the end.
    if (initialized_ && !checkpointer_->is_saving() && !checkpointer_->has_tried(version)) {
      plan_checkpoint();
      order_checkpoint();
    }
    if (checkpointer_->is_saving()) return;  // checkpoint_done() comes here again
  }
  if (!sessions_of(Role::kObserver).empty()) return;
  for (auto* s : sessions_of(Role::kServer)) s->send(wire::StopRequest{"finished"});
  end_when_idle(coordinator_->all_lost() ? Outcome::kAllWorkersLost : Outcome::kFinished);
}

void Server::end_when_idle(Outcome outcome) {
  coming_ = outcome;
  if (!executor_ || executor_->is_idle()) end(outcome);
}

void Server::end(Outcome outcome) {
  if (outcome_ == Outcome::kRunning) {
    outcome_ = outcome;
    mark_end(outcome);
  }
  loop_.wake();
}

// ---- a follower's leader ----

void Server::on_leader_joined(const wire::Joined& joined) {
  index_ = {joined.member.index};
  servers_ = joined.servers;
  workers_ = joined.workers;
  in_place_ = joined.in_place;
  joined_ = true;
  start_ = joined.start;
  loop_.allow_spinning(workers_ + servers_);
  try {
    know_strategy(joined.strategy);
    if (joined.checkpoint.empty()) return;
    begin_from(joined.checkpoint, checkpoint::read_manifest(joined.checkpoint));
  } catch (const UserError& error) {
    cannot_begin(error.what());
  }
}

void Server::on_leader_lost(Status why) {
  if (outcome_ != Outcome::kRunning || coming_) return;  // it said that all is done, and ended first
  const bool hopeless = why.code() == StatusCode::kRefused || why.code() == StatusCode::kMalformed;
  if (!joined_ && !hopeless && SteadyClock::now() - opened_at_ < options_.join_timeout) {
    retry_ = loop_.call_at(SteadyClock::now() + kLeaderRetry, [this] { seek_leader(); });
    return;
  }
  log_->error("the first server is lost: {}", why.message());
  end(Outcome::kLeaderLost);
}

}  // namespace capstan::server
