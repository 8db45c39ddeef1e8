#include "capstan/job/single_checkpoints.h"

#include <thread>
#include <utility>

#include "capstan/base/failure.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/models/buffers.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);

checkpoint::CheckpointOptions options_of(const config::JobConfig& config, const std::filesystem::path& run) {
  const auto every = config::CheckpointEvery::parse(config.checkpoint_every);
  if (every.steps == 0 && every.seconds == 0) return {};
  return {run, every.steps, from_seconds(every.seconds), config.keep};
}

}  // namespace

// Runs the background thread's completions on the training thread.
class SingleCheckpoints::Writer {
 public:
  Writer(const checkpoint::CheckpointOptions& options, Version start)
      : background_([this](std::function<void()> function) {
          const std::lock_guard lock(mutex_);
          delivered_.push_back(std::move(function));
        }),
        checkpointer_(options, start, background_, [] {}) {}

  checkpoint::Checkpointer& checkpointer() { return checkpointer_; }

  // Writes the whole checkpoint as the part of one server.
  void write(checkpoint::Manifest manifest, std::shared_ptr<checkpoint::Snapshot> snapshot, FlatLayout layout,
             std::vector<float> buffers) {
    if (buffers.empty()) layout = {};
    const auto version = manifest.version;
    const auto pieces = std::make_shared<std::vector<checkpoint::Piece>>();
    const FlatLayout parameters(manifest.parameters);
    const auto names = manifest.state;
    const auto folder = checkpointer_.begin(std::move(manifest), 1);
    checkpointer_.describe_buffers(layout);
    background_.post(
        [=, buffers = std::move(buffers)] {
          *pieces = checkpoint::write_part(folder, parameters, names, 0, 1, {0, parameters.size()}, *snapshot,
                                           layout, buffers);
        },
        [=, this](const std::string& error) {
          checkpointer_.written(0, version, error, std::move(*pieces));
        });
  }

  void run_delivered() {
    std::deque<std::function<void()>> ready;
    {
      const std::lock_guard lock(mutex_);
      ready.swap(delivered_);
    }
    for (const auto& function : ready) function();
  }

 private:
  std::mutex mutex_;  // guards delivered_
  std::deque<std::function<void()>> delivered_;
  checkpoint::Background background_;
  checkpoint::Checkpointer checkpointer_;
};

SingleCheckpoints::SingleCheckpoints(const PreparedJob& job, const std::filesystem::path& run,
                                     const optimizer::OptimizerSet& rules, std::uint32_t workers)
    : job_(job),
      run_(run),
      rules_(rules),
      workers_(workers),
      writer_(std::make_unique<Writer>(options_of(job.config, run), job.budget.start)) {
  checkpoint::mark_running(run);
}

SingleCheckpoints::~SingleCheckpoints() = default;

std::uint64_t SingleCheckpoints::newest() const {
  return writer_->checkpointer().newest().value;
}

std::string SingleCheckpoints::error() const {
  const auto& error = writer_->checkpointer().error();
  return error.empty() ? end_error_ : error;
}

void SingleCheckpoints::updated(const training::SingleState& state) {
  writer_->run_delivered();
  if (writer_->checkpointer().is_due(state.version)) begin(state);
}

void SingleCheckpoints::wait(StopToken& stop) {
  while (writer_->checkpointer().is_saving()) {
    if (stop.requests() > 1) {
      // A blocked disk write cannot be cancelled: the writer is leaked, so that its thread stays valid.
      (void)writer_.release();
      throw Failure(kInterrupted, "interrupted while a checkpoint was being written: it is not complete");
    }
    std::this_thread::sleep_for(kPollInterval);
    writer_->run_delivered();
  }
}

void SingleCheckpoints::ended(const training::SingleState& state, StopToken& stop, bool failed) {
  wait(stop);
  if (!options_of(job_.config, run_).is_on()) return;
  if (!writer_->checkpointer().has_tried(state.version)) begin(state);
  wait(stop);
  try {
    checkpoint::mark_finished(run_, state.version, failed || stop.requests() > 0 ? "stopped" : "finished");
  } catch (const UserError& error) {  // with a full disk, the weights are still evaluated and saved
    end_error_ = error.what();
  }
}

void SingleCheckpoints::begin(const training::SingleState& state) {
  const auto& config = job_.config;
  checkpoint::Manifest m;
  if (job_.resume) {
    m.segments = job_.resume->manifest.segments;
    m.trained_samples = job_.resume->manifest.trained_samples;
  }
  m.version = state.version;
  m.parameters = job_.task.layout.tensors();
  m.phases = job_.task.task->phases();
  m.strategy = config.strategy;
  m.optimizer = rules_.spec().kinds();
  m.state = rules_.state_names();
  m.schedule = config.optimizer.lr_schedule;
  m.learning_rate = rules_.learning_rate(state.version);
  m.samples = job_.budget.samples;
  m.seed = config.seed;
  m.trained_samples += state.samples;
  m.segments.push_back({config.batch_size, std::vector(workers_, state.steps)});

  const auto size = job_.task.layout.size();
  const auto snapshot = std::make_shared<checkpoint::Snapshot>(rules_.state_names().size() + 1, size);
  const auto destinations = snapshot->destinations();
  for (std::size_t chunk = 0; chunk < state.shard.chunks(); ++chunk)
    state.shard.save_chunk(chunk, destinations);
  writer_->write(std::move(m), snapshot, job_.task.buffer_layout,
                 models::copy_buffers_out(job_.task.task->buffers()));
}

std::optional<training::SingleStart> single_start(const std::optional<checkpoint::Found>& resume,
                                                  const optimizer::OptimizerSet& rules) {
  if (!resume) return {};
  const auto load = [from = *resume, names = rules.state_names()](std::span<float> weights,
                                                                  std::vector<std::span<float>> state) {
    std::vector<checkpoint::NamedArray> arrays = {{"weights", weights}};
    for (std::size_t i = 0; i < state.size(); ++i) arrays.push_back({names[i], state[i]});
    checkpoint::load(from.folder, from.manifest, {0, weights.size()}, arrays);
  };
  return training::SingleStart{resume->manifest.version, resume->manifest.segments,
                               checkpoint::load_buffers(resume->folder, resume->manifest), load};
}

}  // namespace capstan::job
