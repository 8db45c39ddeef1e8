// The start of a job: its terms, its checkpoint, the model and data of its workers; and the manifest that
// records them.

#include <filesystem>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "capstan/placement/shards.h"
#include "capstan/server/leader.h"
#include "capstan/user_error.h"

namespace capstan::server {
namespace {

wire::OptimizerEntry to_wire(const std::string& glob, const optimizer::Options& o) {
  wire::OptimizerEntry entry{glob, std::string(optimizer::name(o.kind)), {}};
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, const auto& value) {
        entry.options.push_back({std::string(option.name), static_cast<double>(value)});
      },
      o);
  return entry;
}

wire::LocalOptimizer local_optimizer(const optimizer::Spec& spec, const optimizer::Schedule& s) {
  wire::LocalOptimizer message{{to_wire(kDefaultGroup, spec.first)}, s.text(), s.warmup, s.total};
  for (const auto& group : spec.groups) message.entries.push_back(to_wire(group.glob, group.options));
  return message;
}

Result<FlatLayout> buffers_of(const wire::Join& join) {
  return join.buffers.empty() ? FlatLayout() : wire::from_wire(join.buffers);
}

std::string listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Leader::Leader(const RoleContext& context, LeaderOptions options)
    : context_(context),
      options_(std::move(options)),
      coordinator_(options_.job),
      start_by_(context.loop.now() + options_.join_timeout) {
  context_.lifecycle.enter(Phase::kAwaitingModel);
  context_.shard.set_terms(make_terms());
  context_.loop.allow_spinning(options_.job.workers + options_.job.servers);
  // First: a checkpoint that does not match must not cause the run's checkpoints to be set aside.
  if (options_.resume) load_checkpoint(*options_.resume);
  if (options_.checkpoints.is_on()) {
    checkpoints_.emplace(options_.checkpoints, context_.shard.terms().start, context_.loop, buffers_,
                         context_.writer, [this] { checkpoint_done(); });
    checkpoint::mark_running(options_.checkpoints.run);
  }
}

JobTerms Leader::make_terms() const {
  const auto spec = strategy::parse_strategy_spec(options_.job.strategy, options_.job.workers);
  JobTerms terms;
  terms.strategy = spec.spelling();
  terms.workers = options_.job.workers;
  terms.servers = options_.job.servers;
  terms.in_place = spec.workers_idle_during_update();
  if (options_.resume) {
    terms.start = options_.resume->manifest.version;
    terms.segments = options_.resume->manifest.segments;
    terms.checkpoint = std::filesystem::absolute(options_.resume->folder).string();
  }
  if (spec.first->local_steps().uses_local_steps())
    terms.local = local_optimizer(options_.optimizer, options_.schedule);
  terms.job = options_.description.text;
  return terms;
}

void Leader::set_groups() {
  const auto& shard = context_.shard;
  coordinator_.set_groups(shard.groups());
  push_bytes_ = placement::push_bytes(shard.layout(), shard.groups(), options_.job.servers);
}

// Reads off the loop, so that clients can connect meanwhile; no worker starts before every server has its
// weights.
void Leader::load_checkpoint(const checkpoint::Found& from) {
  auto& shard = context_.shard;
  const auto& manifest = from.manifest;
  const auto names = shard.state_names();
  if (manifest.state != names) {
    throw UserError(
        fmt::format("{} was written with optimizer {} (state: {}); this job's optimizer {} has state: {}",
                    from.folder.string(), manifest.optimizer, listed(manifest.state),
                    options_.optimizer.kinds(), listed(names)));
  }
  const Model model{FlatLayout(manifest.parameters), manifest.phases};
  const auto groups = shard.make_groups(model).names();
  if (const auto bad = shard.set_model(model, manifest.marks_of(groups)); !bad.is_ok())
    throw UserError(bad.message());
  if (manifest.samples > 0) data_ = wire::DataSource{manifest.samples, manifest.seed, 0};
  if (!manifest.buffers.empty())
    buffers_.restore(FlatLayout(manifest.buffers), checkpoint::load_buffers(from.folder, manifest));
  set_groups();
  coordinator_.resume(manifest.versions_of(groups), manifest.marks_of(groups));
  context_.lifecycle.enter(Phase::kLoadingCheckpoint);
  context_.writer.background().post(
      [from, range = shard.range(), arrays = shard.arrays()] {
        checkpoint::load(from.folder, from.manifest, range, arrays);
      },
      [this](const std::string& error) {
        if (!error.empty()) {
          context_.log->error(fmt::format("cannot load the checkpoint: {}", error));
          return context_.lifecycle.end(Outcome::kCheckpointUnreadable);
        }
        context_.shard.set_initialized();
        if (context_.lifecycle.phase() == Phase::kLoadingCheckpoint)
          context_.lifecycle.enter(Phase::kServing);
        initialized();
      });
}

Result<wire::Member> Leader::admit(const wire::Join& join) {
  auto& shard = context_.shard;
  if (!join.job.empty() && options_.description.contradictions) {
    const auto difference = options_.description.contradictions(join.job);
    if (!difference.empty()) return Status::refused(difference);
  }
  if (join.role != wire::Role::kWorker) return coordinator_.admit(join.role, join.index, join.incarnation);
  if (context_.lifecycle.phase() >= Phase::kSavingLast) return Status::refused("this job has ended");
  const auto model = model_of(join.layout, join.phases);
  if (!model) return model.status();
  if (auto bad = shard.check_model(*model); !bad.is_ok()) return bad;
  if (auto bad = check_data(join); !bad.is_ok()) return bad;
  const auto member =
      coordinator_.admit(join.role, join.index, join.incarnation, context_.members.doubtful());
  if (!member) return member;
  if (!shard.has_model()) {
    if (auto bad = shard.set_model(*model); !bad.is_ok()) {
      run(coordinator_.member_ended(*member, true, context_.loop.now()));
      return bad;
    }
    set_groups();
    context_.lifecycle.enter(Phase::kAwaitingWeights);
    announce_model();
  }
  // Only now: a refused worker must not set the job's data.
  buffers_.set_layout(*buffers_of(join));
  data_ = join.data;
  return member;
}

// Followers that join later receive it in their first Joined.
void Leader::announce_model() {
  const auto& shard = context_.shard;
  for (std::uint32_t i = 1; i < options_.job.servers; ++i) {
    const wire::Member server{wire::Role::kServer, i};
    auto joined = to_joined(shard.terms(), server, shard.range());
    describe_model(shard.model(), joined);
    context_.members.send(server, joined);
  }
}

// Workers of one job share one training set; a checkpoint's position is a position in the same one.
Status Leader::check_data(const wire::Join& join) const {
  const auto buffers = buffers_of(join);
  if (!buffers) return buffers.status();
  if (join.data.batch > kMostSamplesPerStep / options_.job.workers)
    return Status::refused(fmt::format("a batch of {} samples is too large", join.data.batch));
  if (const auto difference = buffers_.difference(*buffers); !difference.empty())
    return Status::refused("the worker's buffers differ from the job's (here): " + difference);
  auto data = data_.value_or(join.data);
  if (data.batch == 0) data.batch = join.data.batch;
  if (data == join.data) return Status::ok();
  const auto text = [](const wire::DataSource& d) {
    return fmt::format("{} samples, batch size {}, seed {}", d.samples, d.batch, d.seed);
  };
  return Status::refused(fmt::format("the worker's data differ: the job has {}; the worker has {}",
                                     text(data), text(join.data)));
}

checkpoint::Manifest Leader::manifest() const {
  const auto& shard = context_.shard;
  checkpoint::Manifest m;
  m.version = coordinator_.version();
  m.parameters = shard.layout().tensors();
  m.phases = shard.model().phases;
  m.strategy = shard.terms().strategy;
  m.optimizer = options_.optimizer.kinds();
  m.state = shard.state_names();
  m.schedule = options_.schedule.text();
  m.learning_rate = shard.optimizers().learning_rate(m.version);
  if (data_) m.samples = data_->samples, m.seed = data_->seed;
  m.trained_samples =
      (options_.resume ? options_.resume->manifest.trained_samples : 0) + coordinator_.report().samples;
  m.segments = shard.terms().segments;
  if (data_ && data_->batch > 0) m.segments.push_back({data_->batch, coordinator_.steps_done()});
  m.marks = coordinator_.marks();
  const auto versions = coordinator_.versions();
  for (std::size_t g = 0; versions.size() > 1 && g < versions.size(); ++g)
    m.groups.push_back({shard.groups()[g].name, versions[g]});
  return m;
}

}  // namespace capstan::server
