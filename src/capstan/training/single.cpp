#include "capstan/training/single.h"

#include "capstan/base/time.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/store/dense_shard.h"
#include "capstan/training/loader.h"
#include "capstan/training/step.h"

namespace capstan::training {
namespace {

void apply(store::DenseShard& shard, std::uint64_t version, std::span<const float> gradients) {
  const optimizer::Contribution whole[] = {{gradients.data(), 1.0f}};
  for (std::size_t chunk = 0; chunk < shard.chunks(); ++chunk)
    shard.apply_chunk(chunk, Version{version}, whole, {});
}

}  // namespace

SingleResult train_single(const SingleOptions& options, const data::Dataset& dataset,
                          const SingleCallbacks& callbacks) {
  auto made = make_network(options.network, dataset.train->shape(), options.batch_size);
  const auto layout = models::layout_of(*made);
  SingleResult result{layout, store::ZeroedArray(layout.size()), std::move(made)};
  auto* const model = result.model.get();
  models::copy_parameters_out(*model, layout, result.weights);
  models::bind_parameters(*model, layout, result.weights.data());
  store::ZeroedArray gradients(layout.size());
  models::GradientArena arena(*model, layout, gradients);
  const optimizer::Optimizer rule(options.optimizer, options.schedule);
  store::DenseShard shard(result.weights, rule);
  const auto first = options.start.value_or(SingleStart{});
  if (first.load) first.load(result.weights, shard.mutable_state());
  models::copy_buffers_in(*model, first.statistics);
  result.steps = first.version.value;
  data::Sampler sampler({dataset.train->count(), 1, options.batch_size}, 0, options.seed, first.legs);
  Loader loader(*dataset.train, options.loader_threads,
                batches_of(sampler, 0, sampler.total_steps(options.epochs)));

  const auto state = [&]() -> SingleState {
    return {{result.steps}, result.steps - first.version.value, result.samples, shard, *model};
  };
  const auto ends_now = [&] {
    if (options.max_steps > 0 && result.steps >= options.max_steps) return true;
    result.stopped = callbacks.stop && callbacks.stop->load(std::memory_order_relaxed);
    return result.stopped;
  };
  const auto start = SteadyClock::now();
  bool ended = false;
  for (std::uint64_t epoch = 0; epoch < options.epochs && !ended; ++epoch) {
    for (std::uint64_t i = 0; i < sampler.steps(epoch); ++i) {
      ended = ends_now();
      if (ended) break;
      const auto step_start = SteadyClock::now();
      seed_step(options.seed, WorkerId{0}, {result.steps});
      const auto step = compute_gradients(*model, arena, loader.next());
      apply(shard, result.steps, arena.gradients());
      ++result.steps;
      result.samples += step.samples;
      result.data_seconds += loader.wait_seconds();
      if (callbacks.on_update) callbacks.on_update(state());
      const auto now = SteadyClock::now();
      result.seconds = seconds(now - start);
      if (callbacks.on_step) {
        callbacks.on_step({result.steps, epoch, step.loss, step.samples, seconds(now - step_start)});
      }
    }
    if (callbacks.on_epoch && !ended && sampler.steps(epoch) > 0)
      callbacks.on_epoch(epoch, result.weights, *model);
  }
  if (callbacks.on_end) callbacks.on_end(state());
  return result;
}

}  // namespace capstan::training
