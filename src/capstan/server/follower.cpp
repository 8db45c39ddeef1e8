#include "capstan/server/follower.h"

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::server {
namespace {

// Of a job; larger numbers would only cost memory.
constexpr std::uint32_t kMostServers = 1 << 12, kMostWorkers = 1 << 16;

}  // namespace

Follower::Follower(const RoleContext& context, const FollowerOptions& options)
    : context_(context),
      pauses_(MemberTable::kTick, context.loop.now()),
      leader_(context.loop, options.link, options.connect, *this) {
  context_.lifecycle.enter(Phase::kSeekingLeader);
  leader_.open(context.loop.now() + options.join_timeout);
}

// ---- members ----

Result<wire::Member> Follower::admit(const wire::Join& join) {
  auto& shard = context_.shard;
  if (!context_.lifecycle.is_open()) return Status::refused("this job has ended");
  if (!leader_.is_joined()) return Status::unavailable("this server has not joined the leader yet");
  const bool is_worker = join.role == wire::Role::kWorker;
  if (!join.index || join.role == wire::Role::kServer || (is_worker && *join.index >= shard.terms().workers))
    return Status::refused("join the leader first: it assigns ranks");
  const wire::Member member{join.role, *join.index};
  if (!is_worker) {
    // The leader gives each observer a number of its own.
    if (context_.members.find(member) && !context_.members.find(member, join.incarnation))
      return Status::refused(fmt::format("{} is another process", describe(member)));
    return member;
  }
  const auto model = model_of(join.layout, join.phases);
  if (!model) return model.status();
  if (auto bad = check_model(*model); !bad.is_ok()) return bad;
  const auto known = context_.members.incarnation(member.index);
  if (known && *known != join.incarnation)
    return Status::unavailable(
        fmt::format("the previous process of worker {} is not known to be lost yet", member.index));
  if (!shard.has_model()) {
    if (auto bad = shard.set_model(*model); !bad.is_ok()) return bad;
    context_.lifecycle.enter(Phase::kAwaitingWeights);
  }
  return member;
}

// The leader's model, not that of the first worker here, which the leader may not know.
Status Follower::check_model(const Model& model) const {
  const auto& shard = context_.shard;
  if (shard.has_model()) return shard.check_model(model);
  if (!model_) return Status::unavailable("the leader has not announced the job's model yet");
  const auto differs = difference(*model_, model);
  if (differs.empty()) return shard.check_model(model);
  return Status::refused("the worker's model differs from the job's (here): " + differs);
}

void Follower::initialized() {
  leader_.send(wire::Initialized{});
}

void Follower::pushed(const wire::Push& push) {
  leader_.send(wire::Staged{push.worker, push.incarnation, push.sequence});
}

transport::Placement Follower::place(const wire::Member&, const wire::Message&, std::size_t) {
  return transport::Placement::refuse();
}

Status Follower::take(const wire::Member&, const wire::Message& message) {
  return Status::malformed(fmt::format("unexpected {}: this server is a follower", wire::name_of(message)));
}

// The leader answers with its own Gone, in sequence with its orders.
void Follower::lost(const wire::Member& member, Incarnation incarnation, const Status&) {
  if (member.role == wire::Role::kWorker) leader_.send(wire::Gone{member, incarnation, true});
}

void Follower::tick() {
  leader_.beat(pauses_.running_since(context_.loop.now()));
}

// The leader ends the job, for all servers.
void Follower::stop() {
  leader_.send(wire::StopRequest{"stopped"});
}

void Follower::dismiss_workers() {
  for (std::uint32_t rank = 0; rank < context_.shard.terms().workers; ++rank)
    leader_.send(wire::Gone{{wire::Role::kWorker, rank}, {}, false});
}

// After a stop request, a follower has to save what the leader may still order.
wire::StatusReport Follower::status() const {
  wire::StatusReport report;
  report.started = context_.shard.is_initialized();
  report.saving = report.started && context_.lifecycle.is_open();
  return report;
}

// ---- the leader ----

wire::Join Follower::make_join() {
  wire::Join join;
  join.role = wire::Role::kServer;
  return join;
}

transport::Placement Follower::on_payload(cluster::Link&, const wire::Message&, std::size_t) {
  return transport::Placement::refuse();  // orders have no payload
}

void Follower::on_joined(cluster::Link& link, std::optional<transport::Segment>, bool) {
  if (const auto bad = take_terms(link.joined()); !bad.is_ok()) {
    link.close();
    return on_lost(link, bad.within("cannot start with its terms"));
  }
  const auto& terms = context_.shard.terms();
  context_.loop.allow_spinning(terms.workers + terms.servers);
  if (terms.checkpoint.empty()) return context_.lifecycle.enter(Phase::kAwaitingModel);
  try {
    load_checkpoint();
  } catch (const UserError& error) {
    context_.log->error(fmt::format("cannot load the checkpoint: {}", error.what()));
    context_.lifecycle.end(Outcome::kCheckpointUnreadable);
  }
}

Status Follower::take_terms(const wire::Joined& joined) {
  if (joined.member.role != wire::Role::kServer || joined.member.index == 0 ||
      joined.member.index >= joined.servers)
    return Status::malformed(fmt::format("this server became {} of a job with {}", describe(joined.member),
                                         counted(joined.servers, "server")));
  if (joined.servers > kMostServers || joined.workers == 0 || joined.workers > kMostWorkers)
    return Status::malformed(
        fmt::format("a job with {} servers and {} workers; at most {} and {} are possible", joined.servers,
                    joined.workers, kMostServers, kMostWorkers));
  if (auto bad = announce(joined); !bad.is_ok()) return bad;
  try {
    context_.shard.set_terms(terms_of(joined));
  } catch (const UserError& error) {
    return Status::malformed(error.what());
  }
  return Status::ok();
}

// Empty before the first worker has joined the leader.
Status Follower::announce(const wire::Joined& joined) {
  if (joined.layout.empty()) return Status::ok();
  auto model = model_of(joined.layout, joined.phases);
  if (model) model_ = std::move(*model);
  return model.status();
}

// Off the loop: a server that sends no heartbeats while it reads a large model would be declared lost.
void Follower::load_checkpoint() {
  auto& shard = context_.shard;
  const std::filesystem::path folder = shard.terms().checkpoint;
  auto manifest = checkpoint::read_manifest(folder);
  if (manifest.state != shard.state_names())
    throw UserError(fmt::format("{} was written with optimizer {}, whose state differs from this server's",
                                folder.string(), manifest.optimizer));
  const Model model{FlatLayout(manifest.parameters), manifest.phases};
  const auto marks = manifest.marks_of(shard.make_groups(model).names());
  if (const auto bad = shard.set_model(model, marks); !bad.is_ok()) throw UserError(bad.message());
  context_.lifecycle.enter(Phase::kLoadingCheckpoint);
  context_.writer.background().post(
      [folder, manifest = std::move(manifest), range = shard.range(), arrays = shard.arrays()] {
        checkpoint::load(folder, manifest, range, arrays);
      },
      [this](const std::string& error) {
        if (!error.empty()) {
          context_.log->error(fmt::format("cannot load the checkpoint: {}", error));
          return context_.lifecycle.end(Outcome::kCheckpointUnreadable);
        }
        if (!context_.lifecycle.is_open()) return;
        context_.shard.set_initialized();
        context_.lifecycle.enter(Phase::kServing);
        initialized();
      });
}

void Follower::on_message(cluster::Link& link, const wire::Message& message) {
  const auto status = execute(message);
  if (status.is_ok()) return;
  link.close();
  on_lost(link, status.within("its order cannot be executed"));
}

Status Follower::execute(const wire::Message& message) {
  auto& shard = context_.shard;
  if (const auto* apply = std::get_if<wire::ApplyOrder>(&message)) return shard.execute(*apply);
  if (const auto* accumulate = std::get_if<wire::AccumulateOrder>(&message))
    return shard.execute(*accumulate);
  if (const auto* drop = std::get_if<wire::DropOrder>(&message)) return shard.execute(*drop);
  if (const auto* deliver = std::get_if<wire::DeliverOrder>(&message)) return shard.execute(*deliver);
  if (const auto* save = std::get_if<wire::CheckpointOrder>(&message)) {
    if (!shard.is_initialized()) return Status::malformed("a checkpoint before there are weights");
    context_.writer.write(*save, false, [this](const auto& written) { leader_.send(written); });
  } else if (const auto* gone = std::get_if<wire::Gone>(&message)) {
    // The connection first: a payload may still be arriving in this worker's buffer.
    context_.members.forget(gone->member.index, gone->incarnation, gone->lost);
    shard.forget({gone->member.index}, gone->incarnation);
  } else if (const auto* joined = std::get_if<wire::Joined>(&message)) {
    return announce(*joined);
  } else if (std::holds_alternative<wire::StopRequest>(message)) {
    if (!context_.lifecycle.is_open()) return Status::ok();
    leader_.expect_end();
    context_.lifecycle.drain(Outcome::kFinished);
  } else {
    return Status::malformed(fmt::format("unexpected {}", wire::name_of(message)));
  }
  return Status::ok();
}

void Follower::on_lost(cluster::Link&, Status why) {
  if (!context_.lifecycle.is_open()) return;
  context_.log->error(fmt::format("the leader is lost: {}", why.message()));
  context_.lifecycle.end(Outcome::kLeaderLost);
}

}  // namespace capstan::server
