#include "capstan/cli/alone_checkpoints.h"

#include <thread>
#include <utility>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/models/buffers.h"

namespace capstan::cli {
namespace {

checkpoint::CheckpointOptions options_of(const TrainContext& context) {
  const auto every = config::CheckpointEvery::parse(context.config.checkpoint_every);
  if (every.steps == 0 && every.seconds == 0) return {};
  return {context.folder.path(), every.steps, from_seconds(every.seconds), context.config.keep};
}

}  // namespace

AloneCheckpoints::AloneCheckpoints(const TrainContext& context, const optimizer::Optimizer& rule,
                                   std::uint32_t workers)
    : context_(context),
      rule_(rule),
      workers_(workers),
      background_([this](std::function<void()> function) {
        const std::lock_guard lock(mutex_);
        delivered_.push_back(std::move(function));
      }),
      checkpointer_(options_of(context), context.plan.start, background_, [] {}) {
  checkpoint::mark_running(context.folder.path());
}

std::optional<training::SingleStart> single_start(const std::optional<checkpoint::Found>& resume,
                                                  const optimizer::Optimizer& rule) {
  if (!resume) return {};
  return training::SingleStart{resume->manifest.version, resume->manifest.segments,
                               checkpoint::load_buffers(resume->folder, resume->manifest),
                               [from = *resume, names = rule.state_names()](
                                   std::span<float> weights, std::vector<std::span<float>> state) {
                                 std::vector<checkpoint::NamedArray> arrays = {{"weights", weights}};
                                 for (std::size_t i = 0; i < state.size(); ++i)
                                   arrays.push_back({names[i], state[i]});
                                 checkpoint::load(from.folder, from.manifest, {0, weights.size()}, arrays);
                               }};
}

void AloneCheckpoints::updated(const training::SingleState& state) {
  run_delivered();
  if (checkpointer_.is_due(state.version)) begin(state);
}

void AloneCheckpoints::ended(const training::SingleState& state) {
  const auto wait = [&] {
    while (checkpointer_.is_saving()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      run_delivered();
    }
  };
  wait();
  if (!options_of(context_).is_on()) return;
  if (!checkpointer_.has_tried(state.version)) begin(state);
  wait();
  try {
    checkpoint::mark_finished(context_.folder.path(), state.version, "finished");
  } catch (const UserError& error) {  // a full disk is no reason to lose the weights
    end_error_ = error.what();
  }
}

void AloneCheckpoints::begin(const training::SingleState& state) {
  checkpoint::Manifest m;
  if (context_.resume) {
    m.segments = context_.resume->manifest.segments;
    m.trained_samples = context_.resume->manifest.trained_samples;
  }
  m.version = state.version;
  m.parameters = context_.layout.tensors();
  m.strategy = context_.config.strategy;
  m.optimizer = std::string(optimizer::name(rule_.options().kind));
  m.state = rule_.state_names();
  m.schedule = context_.config.optimizer.lr_schedule;
  m.learning_rate = rule_.learning_rate(state.version);
  m.samples = context_.dataset.train->count();
  m.seed = context_.config.seed;
  m.trained_samples += state.samples;
  m.segments.push_back({context_.config.batch_size, std::vector(workers_, state.steps)});
  checkpointer_.begin(std::move(m), 1);

  const auto snapshot = std::make_shared<checkpoint::Snapshot>(
      static_cast<std::size_t>(rule_.state_tensors() + 1), context_.layout.size());
  const auto destinations = snapshot->destinations();
  for (std::size_t chunk = 0; chunk < state.shard.chunks(); ++chunk)
    state.shard.save_chunk(chunk, destinations);
  checkpointer_.take_snapshot(state.version, snapshot, {0, context_.layout.size()});
  checkpointer_.take_buffers(context_.buffer_layout, models::copy_buffers_out(state.model));
}

void AloneCheckpoints::run_delivered() {
  std::deque<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(delivered_);
  }
  for (const auto& function : ready) function();
}

}  // namespace capstan::cli
