// What a server does about checkpoints: beginning from one, and writing them while training goes on.

#include <filesystem>

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/server/server.h"

namespace capstan::server {

using wire::Role;

namespace {

Result<FlatLayout> buffers_of(const wire::Join& join) {
  return join.buffers.empty() ? FlatLayout() : wire::from_wire(join.buffers);
}

}  // namespace

// ---- beginning from one ----

void Server::begin_from(const std::filesystem::path& folder, const checkpoint::Manifest& from) {
  const auto names = state_names();
  if (from.state != names) {
    throw UserError(
        fmt::format("{} was made with {}, whose state is {}; {} here has {}", folder.string(), from.optimizer,
                    from.state.empty() ? "nothing" : fmt::format("{}", fmt::join(from.state, ", ")),
                    optimizer::name(options_.optimizer.kind),
                    names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "))));
  }
  layout_ = FlatLayout(from.parameters);
  make_shard();
  std::vector<checkpoint::NamedArray> arrays = {{"weights", executor_->shard().mutable_weights()}};
  const auto state = executor_->shard().mutable_state();
  for (std::size_t i = 0; i < state.size(); ++i) arrays.push_back({names[i], state[i]});
  start_ = from.version;
  marks_ = from.marks_of(spec_.group_names());
  if (!coordinator_) {
    // Off the loop: the leader takes a server that says nothing while it reads a large model for lost.
    background_ = make_background();
    return background_->post(
        [folder, from, arrays, range = range_] { checkpoint::load(folder, from, range, arrays); },
        [this](const std::string& error) {
          if (!error.empty()) return cannot_begin(error);
          initialized_ = true;
          leader_->send(wire::Initialized{});
        });
  }
  checkpoint::load(folder, from, range_, arrays);
  initialized_ = true;
  segments_ = from.segments;
  if (from.samples > 0) data_ = wire::DataSource{from.samples, from.seed, 0};
  if (!from.buffers.empty())
    buffers_.restore(FlatLayout(from.buffers), checkpoint::load_buffers(folder, from));
  coordinator_->resume(from.versions_of(spec_.group_names()), marks_);
  coordinator_->initialized(ServerId{0});
}

void Server::cannot_begin(const std::string& error) {
  log_->error("cannot begin as the leader says: {}", error);
  end(Outcome::kLeaderLost);
}

// Workers of one job share one training set; a checkpoint's position is a position in the same one.
Status Server::check_data(const wire::Join& join) const {
  const auto buffers = buffers_of(join);
  if (!buffers) return buffers.status();
  if (const auto difference = buffers_.difference(*buffers); !difference.empty())
    return Status::refused("the worker's buffers differ from the job's (here): " + difference);
  auto data = data_.value_or(join.data);
  if (data.batch == 0) data.batch = join.data.batch;
  if (data == join.data) return Status::ok();
  const auto text = [](const wire::DataSource& d) {
    return fmt::format("{} samples, batch size {}, seed {}", d.samples, d.batch, d.seed);
  };
  return Status::refused(
      fmt::format("the worker's data differ: the job has {}; the worker {}", text(data), text(join.data)));
}

// Apart from the check: whoever is refused for another reason must not decide what the job trains on.
void Server::agree_on_data(const wire::Join& join) {
  buffers_.agree(*buffers_of(join));
  data_ = join.data;
}

void Server::greet(WorkerEntry& worker) {
  if (std::exchange(worker.greeted, true) || buffers_.newest().empty()) return;
  const auto values = std::make_shared<std::vector<float>>(buffers_.newest());
  worker.session->send(wire::Buffers{}, *values, [values](Status) {});
}

void Server::take_buffers(Session& session) {
  auto& arrived = entries_.at(session.member()->index).buffers;
  if (arrived.empty()) return;  // a job without any
  auto values = std::move(arrived.front());
  arrived.pop_front();
  buffers_.told({session.member()->index}, std::move(values));
}

// ---- writing one ----

void Server::note_update(Version version) {
  if (checkpointer_ && !checkpoint_due_ && checkpointer_->is_due(version)) plan_checkpoint();
}

// Buffers are asked for at once: the weights of this version, which go out next, bring the question. The
// order itself follows behind them, so that no worker waits for the copy.
void Server::plan_checkpoint() {
  checkpoint_due_ = true;
  checkpoint_buffers_.reset();
  buffers_.want([this, number = ++buffers_asked_](std::vector<float> mean) {
    if (number != buffers_asked_) return;
    checkpoint_buffers_ = std::move(mean);
    hand_over_buffers();
  });
}

void Server::hand_over_buffers() {
  if (checkpoint_due_ || !checkpoint_buffers_) return;
  checkpointer_->take_buffers(buffers_.layout(), std::move(*checkpoint_buffers_));
  checkpoint_buffers_.reset();
}

std::vector<std::string> Server::state_names() const {
  auto names = optimizer_->state_names();
  if (spec_.needs_mean_square()) names.push_back("mean_square");
  return names;
}

checkpoint::Manifest Server::manifest() const {
  checkpoint::Manifest m;
  m.version = coordinator_->version();
  m.parameters = layout_.tensors();
  m.strategy = spec_.spelling();
  m.optimizer = std::string(optimizer::name(options_.optimizer.kind));
  m.state = state_names();
  m.schedule = options_.schedule.text();
  m.learning_rate = optimizer_->learning_rate(m.version);
  if (data_) m.samples = data_->samples, m.seed = data_->seed;
  m.trained_samples =
      (options_.resume ? options_.resume->manifest.trained_samples : 0) + coordinator_->report().samples;
  m.segments = segments_;
  if (data_ && data_->batch > 0) m.segments.push_back({data_->batch, coordinator_->steps_done()});
  m.marks = coordinator_->marks();
  const auto versions = coordinator_->versions();
  const auto names = spec_.group_names();
  for (std::size_t g = 0; groups() > 1 && g < names.size(); ++g) m.groups.push_back({names[g], versions[g]});
  return m;
}

void Server::order_checkpoint() {
  if (!std::exchange(checkpoint_due_, false)) return;
  const wire::CheckpointOrder order{coordinator_->version(),
                                    std::filesystem::absolute(checkpointer_->begin(manifest(), servers_))};
  for (auto* s : sessions_of(Role::kServer)) s->send(order);
  carry_out(order);
  hand_over_buffers();
}

std::unique_ptr<checkpoint::Background> Server::make_background() {
  return std::make_unique<checkpoint::Background>(
      [&loop = loop_](std::function<void()> function) { loop.post(std::move(function)); });
}

void Server::carry_out(const wire::CheckpointOrder& order) {
  if (!initialized_)
    return on_leader_lost(Status::malformed("it ordered a checkpoint before there were weights"));
  const auto snapshot = snapshot_memory();
  if (!snapshot) return written_part({order.version, "no memory is left for a copy of the weights", {}});
  executor_->save(snapshot->destinations(), snapshot, [this, order, snapshot] {
    if (checkpointer_) return checkpointer_->take_snapshot(order.version, snapshot, range_);
    if (!background_) background_ = make_background();
    const auto written =
        std::make_shared<wire::CheckpointWritten>(wire::CheckpointWritten{order.version, {}, {}});
    background_->post(
        [this, order, snapshot, written] {
          for (const auto& p : checkpoint::write_part(order.folder, layout_, state_names(), index_.value,
                                                      servers_, range_, *snapshot))
            written->pieces.push_back(
                {p.file, p.key, p.array, p.tensor, p.elements.begin, p.elements.end, p.checksum});
        },
        [this, written](const std::string& error) {
          written->error = error;
          written_part(*written);
        });
  });
}

std::shared_ptr<checkpoint::Snapshot> Server::snapshot_memory() const {
  try {
    return std::make_shared<checkpoint::Snapshot>(state_names().size() + 1, range_.size());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Server::written_part(const wire::CheckpointWritten& written) {
  if (!checkpointer_) return leader_->send(written);
  checkpointer_->written(index_.value, written.version, written.error, {});
}

void Server::checkpoint_done() {
  if (checkpointer_->error().empty()) {
    log_->info("checkpoint of version {} written", checkpointer_->newest().value);
  } else {
    log_->warn("a checkpoint could not be written: {}", checkpointer_->error());
  }
  check_end();
}

void Server::mark_end(Outcome outcome) {
  if (!checkpointer_ || !coordinator_) return;
  try {
    checkpoint::mark_finished(options_.checkpoints.run, coordinator_->version(),
                              outcome == Outcome::kFinished ? "finished" : "lost");
  } catch (const UserError& error) {
    log_->warn("{}", error.what());
  }
}

}  // namespace capstan::server
