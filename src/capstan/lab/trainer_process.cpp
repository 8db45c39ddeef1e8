#include "capstan/lab/trainer_process.h"

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/cluster/token.h"
#include "capstan/job/task_factory.h"
#include "capstan/lab/assembly.h"
#include "capstan/lab/controlled_process.h"
#include "capstan/lab/names.h"
#include "capstan/lab/strategy_trainer.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/allreduce.h"
#include "capstan/training/threads.h"

namespace capstan::lab {
namespace {

std::int64_t nanoseconds(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

class TrainerProcess {
 public:
  TrainerProcess(const Plan& plan, const Registry& registry, std::uint32_t rank)
      : plan_(plan), registry_(registry), rank_(rank) {
    metrics_.set_enabled(plan.timers);
  }

  void run() {
    start();
    while (const auto command = control_.next()) {
      if (command->kind == Command::Kind::kPrepare) prepare(*command);
      if (command->kind == Command::Kind::kRun) train();
    }
  }

 private:
  void start() {
    Answer started;
    started.started = true;
    if (rank_ == 0 && uses_group(plan_)) {
      // The launcher ends this process if another trainer is lost.
      group_ = training::AllreduceGroup::open(fmt::format("{}:{}", plan_.master_addr, plan_.master_port),
                                              plan_.trainers, [] {});
      started.address = group_->address();
    }
    control_.answer(started);
  }

  void prepare(const Command& command) {
    run_ = command.run;
    join_group(command.group);
    trainer_.reset();  // before the task, whose tensors it refers to
    task_.reset();     // before the next one takes as much memory
    task_ = make_task(plan_, registry_);
    metrics_.clear();
    trainer_ = is_strategy(plan_.trainer) ? make_strategy_trainer(plan_.trainer, context(command))
                                          : make_trainer(plan_, registry_, context(command));
    trainer_->prepare(*task_);
    if (rank_ == 0 && run_ == 0) note_left_over();
    Answer ready;
    ready.ready = true;
    control_.answer(ready);
  }

  // The launcher passes it to the user.
  void note_left_over() const {
    const auto samples = task_->split(Split::kTrain).samples;
    const auto [steps, left_over] = deal_batches(samples, plan_.batch_size, plan_.trainers);
    if (left_over > 0 && steps > 0)
      fmt::print(
          stderr,
          "note: {} batches do not divide among {} trainers: each has {} steps in an epoch, and the last {} "
          "{} left out\n",
          steps * plan_.trainers + left_over, plan_.trainers, steps,
          left_over == 1 ? "batch" : fmt::format("{} batches", left_over), left_over == 1 ? "is" : "are");
  }

  void join_group(const std::string& address) {
    if (!uses_group(plan_) || has_joined_) return;
    if (!group_) group_ = training::AllreduceGroup::join(address, rank_, plan_.trainers);
    group_->rendezvous();
    has_joined_ = true;
  }

  TrainerContext context(const Command& command) {
    auto context = trainer_context(plan_, rank_, metrics_);
    context.servers = command.servers;
    context.token = cluster::find_token({}).text();
    context.group = group_;
    context.on_step = [this](std::uint64_t done, std::uint64_t total) { control_.report_step(done, total); };
    return context;
  }

  void train() {
    CAPSTAN_CHECK(trainer_ != nullptr, "a run is prepared first");
    const auto begin = SteadyClock::now();
    trainer_->train(*task_);
    const auto end = SteadyClock::now();
    const auto& result = trainer_->result();
    Answer done;
    done.done = {nanoseconds(begin),  nanoseconds(end),    result.steps,  result.samples,   result.loss,
                 result.bytes_pushed, result.bytes_pulled, result.hidden, metrics_.series()};
    save();
    control_.answer(done);
  }

  void save() const {
    if (plan_.save.empty()) return;
    const auto folder = plan_.save / fmt::format("run-{}", run_);
    std::filesystem::create_directories(folder);
    const auto layout = models::layout_of(task_->parameters());
    std::vector<float> flat(layout.size());
    models::copy_parameters_out(task_->parameters(), layout, flat);
    checkpoint::write_model(folder / fmt::format("trainer-{}.safetensors", rank_), layout, flat,
                            models::buffer_layout_of(task_->buffers()),
                            models::copy_buffers_out(task_->buffers()), {});
  }

  const Plan& plan_;
  const Registry& registry_;
  const std::uint32_t rank_;
  ControlledProcess control_;
  MetricsLogger metrics_;
  std::shared_ptr<training::AllreduceGroup> group_;
  bool has_joined_ = false;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Trainer> trainer_;
  std::uint32_t run_ = 0;
};

}  // namespace

void run_trainer_process(const Plan& plan, const Registry& registry, std::uint32_t rank) {
  training::configure_torch(static_cast<int>(plan.threads));
  TrainerProcess(plan, registry, rank).run();
}

}  // namespace capstan::lab
