#include "capstan/job/allreduce_group.h"

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/client/connector.h"
#include "capstan/job/warnings.h"
#include "capstan/launch/process_group.h"
#include "capstan/training/allreduce.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

constexpr auto kExitTimeout = std::chrono::seconds(5);
constexpr auto kCauseTimeout = std::chrono::seconds(1);  // to find the process that broke the connection

training::GroupMember part_of(training::AllreduceGroup& group, const config::JobConfig& config,
                              std::uint32_t rank) {
  return {rank, config.workers, [&group](std::span<float> values) { group.sum(values); },
          config.slow_down(rank)};
}

std::vector<launch::ProcessGroup::Member> followers(const std::string& program, const PreparedJob& job,
                                                    const std::string& address,
                                                    const std::filesystem::path& run) {
  std::vector<launch::ProcessGroup::Member> members;
  for (std::uint32_t rank = 1; rank < job.config.workers; ++rank) {
    std::vector<std::string> arguments = {program, "train", "--config=" + (run / kConfiguration).string(),
                                          "--group-address=" + address, fmt::format("--group-rank={}", rank)};
    if (job.resume) arguments.push_back("--resume=" + job.resume->folder.string());
    members.push_back({arguments, run / fmt::format("worker-{}.log", rank)});
  }
  return members;
}

// Throws if a process is lost or reports wrong input.
void check(const std::optional<launch::ProcessGroup::Lost>& lost, const Program& program) {
  if (!lost) return;
  const auto words = without_prefix(lost->last_log_line, program.name);
  if (lost->exit.code == kWrongUsage) throw UserError(words);
  auto how = lost->was_stopped ? "it was stopped" : lost->exit.text();
  if (lost->exit.signal == 0 && !words.empty()) how += ", last log line: " + words;
  throw Failure(kLost, fmt::format("worker {} is lost ({}): training cannot continue without it",
                                   lost->index + 1, how));
}

}  // namespace

TrainResult train_allreduce(PreparedJob& job, Environment environment, RunRecord& record,
                            const RunOptions& options) {
  const auto host = client::parse_address(job.config.listen).host;
  bool all_joined = false;
  std::unique_ptr<training::AllreduceGroup> group;
  launch::ProcessGroup
      processes;  // destroyed before the group, whose destructor waits for pending operations
  const auto poll = [&] {
    check(processes.find_lost(), environment.program);
    const auto requests = environment.stop.requests();
    if (requests > 0 && !all_joined) throw Failure(kInterrupted, "interrupted before all workers had joined");
    if (requests > 1)
      throw Failure(kInterrupted, "interrupted; the workers did not end their step and were killed");
  };
  group = training::AllreduceGroup::open(host + ":0", job.config.workers, poll);
  processes.start(followers(environment.program.trainer, job, group->address(), record.path()));
  try {
    group->rendezvous();
    all_joined = true;
    const auto own = part_of(*group, job.config, 0);
    auto result = SingleProcess(job, environment, record, options, own).run();
    processes.wait(SteadyClock::now() + kExitTimeout);
    return result;
  } catch (const Failure& failure) {
    if (failure.code() == kLost)
      check(processes.await_lost(SteadyClock::now() + kCauseTimeout), environment.program);
    throw;
  }
}

void follow_allreduce(PreparedJob& job, const std::string& address, std::uint32_t rank) {
  const auto& config = job.config;
  if (rank >= config.workers)
    throw UserError(fmt::format("--group-rank {}: the group has {} workers, from 0", rank, config.workers));
  const auto group = training::AllreduceGroup::join(address, rank, config.workers);
  group->rendezvous();
  const optimizer::OptimizerSet rules(config.optimizer.spec(), {});
  (void)training::train_single(
      {config.batch_size, config.epochs, config.max_steps, config.seed, config.optimizer.spec(),
       config.optimizer.schedule(job.budget.total), config.threads_per_loader(),
       single_start(job.resume, rules), part_of(*group, config, rank)},
      *job.task.task, {});
}

}  // namespace capstan::job
