#include "capstan/training/worker.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/strategy/strategy_spec.h"
#include "capstan/training/batches.h"
#include "capstan/training/local_trainer.h"
#include "capstan/training/phases.h"
#include "capstan/training/step.h"

namespace capstan::training {
namespace {

// How often a worker reports progress during local steps.
constexpr auto kReportInterval = std::chrono::milliseconds(500);

// One of the server's optimizers for local steps. Both sides have the same protocol version, so no option may
// be missing.
Result<optimizer::Options> local_options(const wire::OptimizerEntry& named) {
  optimizer::Options options{.kind = optimizer::parse_kind(named.name)};
  std::string missing;
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, auto& value) {
        const auto found = std::ranges::find(named.options, option.name, &wire::OptimizerOption::name);
        if (found == named.options.end())
          missing = option.name;
        else
          value = static_cast<std::remove_reference_t<decltype(value)>>(found->value);
      },
      options);
  if (!missing.empty())
    return Status::malformed("the server sent no " + missing + " for optimizer " + named.name);
  return options;
}

Result<optimizer::Spec> local_optimizers(const wire::LocalOptimizer& named) {
  if (named.entries.empty()) return Status::malformed("the server sent no optimizer for local steps");
  optimizer::Spec spec;
  for (std::size_t entry = 0; entry < named.entries.size(); ++entry) {
    const auto options = local_options(named.entries[entry]);
    if (!options) return options.status();
    if (entry == 0) {
      spec.first = *options;
    } else {
      spec.groups.push_back({named.entries[entry].glob, *options});
    }
  }
  return spec;
}

// One worker's training loop.
class Worker {
 public:
  Worker(client::WorkerClient& client, Task& task, const FlatLayout& layout, const WorkerOptions& options,
         const client::Update& update)
      : client_(client),
        task_(task),
        layout_(layout),
        options_(options),
        spec_(strategy::parse_strategy_spec(client.strategy(), client.workers())),
        local_steps_(spec_.first->local_steps()),
        split_(options.split.value_or(task.split(Split::kTrain))),
        sampler_({split_.samples, client.workers(), options.batch_size}, client.rank().value, options.seed,
                 client.segments(), split_.order),
        before_(steps_of(client.segments())),
        total_(sampler_.total_steps(options.epochs)),
        first_(std::min(total_, first_step(update.version))),
        batches_(task, sampler_, first_, total_, options.loader_threads),
        update_(update) {
    client_.skip_to({first_});
  }

  Status run() { return local_steps_.uses_local_steps() ? train_locally() : compute_for_servers(); }
  WorkerResult result() const {
    auto result = result_;
    result.communication_seconds = client_.communication_seconds();
    const auto traffic = client_.traffic();
    result.bytes_pushed = traffic.pushed;
    result.bytes_pulled = traffic.pulled;
    return result;
  }

 private:
  // The step of its sequence at which a worker that joins at this version begins: 0 at the start of the job,
  // otherwise about that of the other workers.
  std::uint64_t first_step(Version version) const {
    const auto rounds = spec_.pushes(client_.start(), version) / client_.workers();
    return local_steps_.epochs > 0 ? sampler_.total_steps(rounds * local_steps_.epochs)
                                   : rounds * local_steps_.steps;
  }

  bool is_to_end() const {
    return update_.stop || client_.asked_to_stop() ||
           (options_.stop && options_.stop->load(std::memory_order_relaxed));
  }

  Status compute_for_servers() {
    std::vector<float> copy(task_.writes_parameters() ? layout_.size() : 0);  // the weights may be read-only
    models::bind_parameters(task_.parameters(), layout_,
                            copy.empty() ? client_.weights().data() : copy.data());
    const auto refresh = [&] {
      if (!copy.empty()) std::ranges::copy(client_.weights(), copy.begin());
    };
    refresh();
    models::GradientArena arena(task_.parameters(), layout_, client_.gradients());
    const Phases phases(task_, layout_);
    for (auto step = first_; step < total_ && !is_to_end(); ++step) {
      seed_step(options_.seed, client_.rank(), update_.version);
      begin_times();
      const auto batch = batches_.next();
      end_data();
      report_.data_seconds = batches_.wait_seconds();
      // The servers end a job between two steps, but not always before this worker has finished its own.
      for (std::uint32_t phase = 0; phase < phases.count() && !update_.stop; ++phase) {
        phases.enter(phase);
        const auto result = slowed(compute_gradients(task_, phase, arena, batch), options_.slow_down);
        add(result, phase + 1 == phases.count());
        if (options_.on_step) phase_times_.push_back(result.times);
        report_.phase = phase;
        if (auto bad = exchange(arena.rows()); !bad.is_ok()) return bad;
        refresh();
      }
      report_times(step, batch);
    }
    models::unbind_parameters(task_.parameters());  // other workers may continue and change the bound weights
    return Status::ok();
  }

  Status train_locally() {
    const auto& o = client_.local_optimizer();
    const auto optimizers = local_optimizers(o);
    if (!optimizers) return optimizers.status();
    LocalTrainer trainer(task_, layout_, client_.weights(), *optimizers,
                         optimizer::Schedule::parse(o.schedule, o.warmup, o.total));
    for (auto step = first_; step < total_ && !is_to_end(); ++step) {
      seed_step(options_.seed, client_.rank(), {before_ + step});
      begin_times();
      const auto batch = batches_.next();
      end_data();
      report_.data_seconds += batches_.wait_seconds();
      auto* const times = options_.on_step ? &phase_times_ : nullptr;
      add(slowed(trainer.step(batch, before_ + step, times), options_.slow_down), true);
      if (ends_round(step)) {
        trainer.write_push(local_steps_.payload, client_.weights(), client_.gradients());
        if (auto bad = exchange(); !bad.is_ok()) return bad;
        trainer.move_to(client_.weights(), local_steps_.move);
      } else {
        report_progress();
      }
      report_times(step, batch);
    }
    return Status::ok();
  }

  void begin_times() {
    if (!options_.on_step) return;
    times_ = {};
    phase_times_.clear();
    times_.begin = SteadyClock::now();
  }
  void end_data() {
    if (options_.on_step) times_.data_end = SteadyClock::now();
  }
  void report_times(std::uint64_t step, const Batch& batch) {
    if (!options_.on_step) return;
    times_.end = SteadyClock::now();
    const auto place = sampler_.place(step);
    times_.epoch = place.epoch;
    times_.index = place.step;
    times_.samples = batch.samples;
    times_.loss = result_.loss;
    times_.phases = phase_times_;
    options_.on_step(times_);
  }

  bool ends_round(std::uint64_t step) const {
    if (step + 1 == total_) return true;
    if (local_steps_.epochs == 0) return (step + 1) % local_steps_.steps == 0;
    const auto here = sampler_.place(step).epoch, next = sampler_.place(step + 1).epoch;
    return here / local_steps_.epochs != next / local_steps_.epochs;
  }

  // Adds a step, or one of its phases.
  void add(const StepResult& step, bool ends_step) {
    loss_ += step.loss * static_cast<double>(step.samples);
    report_.samples += static_cast<std::uint32_t>(step.samples);
    report_.compute_seconds += step.seconds;
    result_.compute_seconds += step.seconds;
    if (!ends_step) return;
    ++report_.steps;
    ++result_.steps;
    result_.samples += step.samples;
    result_.loss = step.loss;
    result_.data_seconds += batches_.wait_seconds();
  }

  void report_progress() {
    if (SteadyClock::now() - reported_ < kReportInterval) return;
    reported_ = SteadyClock::now();
    report_.loss = mean_loss();
    client_.report_progress(report_);
  }

  float mean_loss() const { return report_.samples > 0 ? static_cast<float>(loss_ / report_.samples) : 0; }

  Status exchange(const RowLists& rows = {}) {
    report_.loss = mean_loss();
    if (options_.on_step) phase_times_.back().exchange_begin = SteadyClock::now();
    auto update = client_.push_pull(report_, rows);
    if (!update) return update.status();
    if (options_.on_step) phase_times_.back().exchange_end = SteadyClock::now();
    update_ = *update;
    report_ = {.steps = 0};
    loss_ = 0;
    if (update_.buffers) client_.send_buffers(models::copy_buffers_out(task_.buffers()));
    return Status::ok();
  }

  client::WorkerClient& client_;
  Task& task_;
  const FlatLayout& layout_;
  const WorkerOptions& options_;
  const strategy::StrategySpec spec_;
  const strategy::LocalSteps local_steps_;
  const SplitInfo split_;
  data::Sampler sampler_;
  const std::uint64_t before_;         // steps of earlier segments
  const std::uint64_t total_, first_;  // steps of this segment
  Batches batches_;
  client::Update update_;
  client::StepReport report_{.steps = 0};  // of the steps since the last push
  double loss_ = 0;                        // sum over their samples
  TimePoint reported_ = SteadyClock::now();
  WorkerResult result_;
  // Of the current step, for options_.on_step:
  StepTimes times_;
  std::vector<PhaseTimes> phase_times_;
};

}  // namespace

Result<WorkerResult> run_worker(client::WorkerClient& client, Task& task, const FlatLayout& layout,
                                const WorkerOptions& options) {
  const auto update = client.pull();
  if (!update) return update.status();
  if (options.on_start) options.on_start();
  models::copy_buffers_in(task.buffers(), client.initial_buffers());
  Worker worker(client, task, layout, options, *update);
  if (auto bad = worker.run(); !bad.is_ok()) return bad;
  if (!task.buffers().empty()) client.send_buffers(models::copy_buffers_out(task.buffers()));
  client.leave();
  return worker.result();
}

}  // namespace capstan::training
