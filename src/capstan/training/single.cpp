#include "capstan/training/single.h"

#include <algorithm>

#include <ATen/ops/from_blob.h>

#include "capstan/base/time.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/store/dense_shard.h"
#include "capstan/training/batches.h"
#include "capstan/training/group_updates.h"
#include "capstan/training/phases.h"
#include "capstan/training/step.h"

namespace capstan::training {
namespace {

// The rows of all row tensors, which a group shares; 0 in a single process.
std::size_t shared_rows(const GroupMember& group, const FlatLayout& layout) {
  std::size_t rows = 0;
  for (const auto& tensor : layout.tensors())
    if (tensor.sparse && group.sum) rows += static_cast<std::size_t>(tensor.dims[0]);
  return rows;
}

// What a group sums in a step, in one array: gradients times samples, which rows of row tensors have one, the
// model's buffers, the stop requests, and each process's StepPart.
class Shares {
 public:
  Shares(const GroupMember& group, const FlatLayout& layout, std::size_t buffers)
      : group_(group),
        gradients_(layout.size()),
        rows_(shared_rows(group, layout)),
        buffers_(buffers),
        flat_(gradients_ + rows_ + buffers + 1 + group.workers * kNumbers),
        parts_(group.workers) {}

  std::span<float> gradients() { return all().first(gradients_); }
  // The parts of the step of all processes.
  std::span<const StepPart> parts() const { return parts_; }
  // Returns the factor for the summed gradients. Afterwards the arena has the rows of all processes, the task
  // has the mean of the buffers, and `stop` is set if any process set it.
  float add_up(const StepPart& own, Task& task, models::GradientArena& arena, bool& stop) {
    parts_[group_.rank] = own;
    if (!group_.sum) return 1;
    at::from_blob(flat_.data(), {static_cast<std::int64_t>(gradients_)}, at::kFloat).mul_(own.samples);
    mark_rows(arena);
    const auto buffers = all().subspan(gradients_ + rows_, buffers_);
    std::ranges::copy(models::copy_buffers_out(task.buffers()), buffers.begin());
    auto& stops = all()[gradients_ + rows_ + buffers_];
    stops = stop ? 1 : 0;
    const auto numbers = all().last(group_.workers * kNumbers);
    std::ranges::fill(numbers, 0.0f);
    const float mine[] = {own.samples, own.loss, own.compute_seconds, own.wait_seconds, own.data_seconds};
    std::ranges::copy(mine, numbers.begin() + group_.rank * kNumbers);
    group_.sum(all());
    take_rows(arena);
    for (auto& b : buffers) b /= static_cast<float>(group_.workers);
    models::copy_buffers_in(task.buffers(), buffers);
    stop = stops > 0;
    float samples = 0;
    for (std::uint32_t i = 0; i < group_.workers; ++i) {
      const auto* of = &numbers[i * kNumbers];
      parts_[i] = {of[0], of[1], of[2], of[3], of[4]};
      samples += of[0];
    }
    return samples > 0 ? 1 / samples : 0;
  }

 private:
  void mark_rows(const models::GradientArena& arena) {
    auto* mark = flat_.data() + gradients_;
    std::fill_n(mark, rows_, 0.0f);
    for (std::size_t t = 0; rows_ > 0 && t < arena.rows().size(); ++t) {
      const auto& tensor = arena.layout().tensors()[t];
      for (const auto row : arena.rows()[t]) mark[row] = 1;
      if (tensor.sparse) mark += tensor.dims[0];
    }
  }
  void take_rows(models::GradientArena& arena) {
    const auto* mark = flat_.data() + gradients_;
    for (std::size_t t = 0; rows_ > 0 && t < arena.rows().size(); ++t) {
      const auto& tensor = arena.layout().tensors()[t];
      if (!tensor.sparse) continue;
      std::vector<std::uint32_t> rows;
      for (std::int64_t row = 0; row < tensor.dims[0]; ++row)
        if (*mark++ > 0) rows.push_back(static_cast<std::uint32_t>(row));
      arena.set_rows(t, std::move(rows));
    }
  }

  static constexpr std::size_t kNumbers = 5;
  std::span<float> all() { return flat_; }

  const GroupMember& group_;
  const std::size_t gradients_, rows_, buffers_;
  store::ZeroedArray flat_;
  std::vector<StepPart> parts_;  // by rank
};

}  // namespace

SingleResult train_single(const SingleOptions& options, Task& task, const SingleCallbacks& callbacks) {
  const auto layout = models::layout_of(task.parameters());
  SingleResult result{layout, store::ZeroedArray(layout.size())};
  models::copy_parameters_out(task.parameters(), layout, result.weights);
  models::bind_parameters(task.parameters(), layout, result.weights.data());
  Shares shares(options.group, layout, models::buffer_layout_of(task.buffers()).size());
  models::GradientArena arena(task.parameters(), layout, shares.gradients());
  const optimizer::OptimizerSet rules(options.optimizer, options.schedule);
  const ParameterGroups groups(layout, {.optimizers = options.optimizer.globs(), .phases = task.phases()});
  const GroupUpdates updates(layout, groups);
  store::DenseShard shard(result.weights, rules, false,
                          store::shard_groups(layout, groups, {0, layout.size()}));
  const Phases phases(task, layout);
  const auto first = options.start.value_or(SingleStart{});
  if (first.load) first.load(result.weights, shard.mutable_state());
  models::copy_buffers_in(task.buffers(), first.buffers);
  result.steps = first.version.value;
  const auto train = options.split.value_or(task.split(Split::kTrain));
  data::Sampler sampler({train.samples, options.group.workers, options.batch_size}, options.group.rank,
                        options.seed, first.segments, train.order);
  Batches batches(task, sampler, 0, sampler.total_steps(options.epochs), options.loader_threads);

  const auto state = [&]() -> SingleState {
    return {{result.steps}, result.steps - first.version.value, result.samples, shard};
  };
  const auto wants_to_stop = [&] {
    return callbacks.stop && callbacks.stop->load(std::memory_order_relaxed);
  };
  const auto ends_now = [&] {
    if (options.max_steps > 0 && result.steps >= options.max_steps) return true;
    if (!options.group.sum) result.stopped = wants_to_stop();
    return result.stopped;
  };
  const auto start = SteadyClock::now();
  bool ended = false;
  double waited = 0;
  std::vector<PhaseTimes> phase_times;
  for (std::uint64_t epoch = 0; epoch < options.epochs && !ended; ++epoch) {
    for (std::uint64_t i = 0; i < sampler.steps(epoch); ++i) {
      ended = ends_now();
      if (ended) break;
      const auto step_start = SteadyClock::now();
      seed_step(options.seed, WorkerId{options.group.rank}, {result.steps});
      bool stop = wants_to_stop();  // all processes of a group stop after the same step
      const auto batch_begin = SteadyClock::now();
      const auto batch = batches.next();
      const auto batch_end = SteadyClock::now();
      double computing = 0, waiting = 0, own_loss = 0;
      phase_times.clear();
      for (std::uint32_t phase = 0; phase < phases.count(); ++phase) {
        phases.enter(phase);
        const auto own = slowed(compute_gradients(task, phase, arena, batch), options.group.slow_down);
        computing += own.seconds;
        own_loss = own.loss;
        auto& times = phase_times.emplace_back(own.times);
        times.exchange_begin = SteadyClock::now();
        const auto factor = shares.add_up(
            {static_cast<float>(own.samples), static_cast<float>(own.loss), static_cast<float>(computing),
             static_cast<float>(waited), static_cast<float>(batches.wait_seconds())},
            task, arena, stop);
        times.optimizer_begin = SteadyClock::now();
        times.exchange_end = options.group.sum ? times.optimizer_begin : times.exchange_begin;
        waiting += seconds(times.exchange_end - times.exchange_begin);
        updates.apply(shard, phase, Version{result.steps}, {arena.gradients().data(), factor}, arena.rows());
        times.optimizer_end = SteadyClock::now();
      }
      if (options.group.sum) result.stopped = stop;
      // Before the first step of an epoch the others wait for the evaluating process; that is not training
      // time.
      waited = i > 0 ? waiting : 0;
      ++result.steps;
      SingleStep step{result.steps, epoch, 0, 0, 0, shares.parts()};
      for (const auto& part : step.parts) {
        step.samples += static_cast<std::uint64_t>(part.samples);
        step.loss += static_cast<double>(part.samples) * part.loss;
      }
      if (step.samples > 0) step.loss /= static_cast<double>(step.samples);
      result.samples += step.samples;
      if (callbacks.on_update) callbacks.on_update(state());
      const auto now = SteadyClock::now();
      result.seconds = seconds(now - start);
      step.seconds = seconds(now - step_start);
      if (callbacks.on_step) callbacks.on_step(step);
      if (callbacks.on_times)
        callbacks.on_times({epoch, i, batch.samples, own_loss, batch_begin, batch_end, now, phase_times});
    }
    if (callbacks.on_epoch && !ended && sampler.steps(epoch) > 0) callbacks.on_epoch(epoch, result.weights);
  }
  if (callbacks.on_end) callbacks.on_end(state());
  return result;
}

}  // namespace capstan::training
