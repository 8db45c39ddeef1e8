#include "capstan/cli/train_team.h"

#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/alone_checkpoints.h"
#include "capstan/cli/network.h"
#include "capstan/client/connector.h"
#include "capstan/launch/child.h"
#include "capstan/training/allreduce.h"
#include "capstan/training/single.h"

namespace capstan::cli {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kStoppedPatience = std::chrono::seconds(3);
constexpr auto kEndPatience = std::chrono::seconds(5);

// The letter by which the kernel tells what a process does: T where it has been stopped.
char state_of(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text{std::istreambuf_iterator<char>(stat), {}};
  const auto name_end = text.rfind(") ");
  return name_end == std::string::npos ? ' ' : text[name_end + 2];
}

// The other processes of a team, and a thread that looks after them: Gloo cannot do without a peer, and does
// not notice one that has been stopped. Use from one thread, which lives as long as the process.
class Followers {
 public:
  void start(const TrainContext& context, const std::string& address) {
    for (std::uint32_t rank = 1; rank < context.config.workers; ++rank) {
      std::vector<std::string> arguments = {launch::program("capstan-torch"), "train",
                                            "--config=" + (context.folder.path() / "config.toml").string(),
                                            "--team=" + address, fmt::format("--team-rank={}", rank)};
      if (context.resume) arguments.push_back("--resume=" + context.resume->folder.string());
      const auto log = context.folder.path() / fmt::format("worker-{}.log", rank);
      children_.push_back({launch::Child({arguments, {}, log, false}), log, {}, {}, false});
    }
    watch_ = std::jthread([this](const std::stop_token& ending) {
      while (!ending.stop_requested()) {
        look();
        std::this_thread::sleep_for(kLook);
      }
    });
  }

  // Throws if one is lost, or has been given wrong input.
  void check() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < children_.size(); ++i) {
      const auto& child = children_[i];
      if (!child.end || child.end->code == 0) continue;
      const auto words = without_name(launch::last_line(child.log));
      if (child.end->code == kWrongUsage) throw UserError(words);
      auto how = child.killed ? "it was stopped" : child.end->text();
      if (child.end->signal == 0 && !words.empty()) how += ", it said: " + words;
      throw Failure(kLost,
                    fmt::format("worker {} is lost ({}): training cannot go on without it", i + 1, how));
    }
  }
  // A connection has broken: throws if one of them is the cause, for which the kernel may take a moment.
  void check_soon() {
    for (const auto until = SteadyClock::now() + std::chrono::seconds(1); SteadyClock::now() < until;) {
      check();
      std::this_thread::sleep_for(kLook);
    }
  }
  // They end by themselves after the last step.
  void wait() {
    watch_ = {};
    for (auto& c : children_) (void)c.process.wait(SteadyClock::now() + kEndPatience);
  }

 private:
  struct Follower {
    launch::Child process;
    std::filesystem::path log;
    std::optional<launch::Exit> end;
    std::optional<TimePoint> stopped_at;
    bool killed = false;  // by us, since it was stopped
  };

  void look() {
    const std::lock_guard lock(mutex_);
    for (auto& c : children_) {
      if (!c.end) c.end = c.process.poll();
      if (c.end) continue;
      if (state_of(c.process.pid()) != 'T') {
        c.stopped_at.reset();
      } else if (!c.stopped_at) {
        c.stopped_at = SteadyClock::now();
      } else if (SteadyClock::now() - *c.stopped_at > kStoppedPatience) {
        c.killed = true;
        c.process.signal(SIGKILL);
      }
    }
  }

  std::mutex mutex_;
  std::vector<Follower> children_;  // rank 1 first
  std::jthread watch_;              // last: ends first
};

training::Team team(training::AllreduceGroup& group, const config::JobConfig& config, std::uint32_t rank) {
  return {rank, config.workers, [&group](std::span<float> values) { group.sum(values); },
          config.slow_down(rank)};
}

}  // namespace

job::TrainResult train_in_team(TrainContext& context) {
  const auto host = client::parse_address(context.config.listen).host;
  bool met = false;
  std::unique_ptr<training::AllreduceGroup> group;
  Followers followers;  // ends before the group, which waits for what they have under way
  const auto look = [&] {
    followers.check();
    const auto asked = context.interrupts.count();
    if (asked > 0 && !met) throw Failure(kInterrupted, "interrupted before all workers had come");
    if (asked > 1)
      throw Failure(kInterrupted, "interrupted; the workers did not end their step and were killed");
  };
  group = training::AllreduceGroup::open(host + ":0", context.config.workers, look);
  followers.start(context, group->address());
  try {
    group->meet();
    met = true;
    auto result = train_alone(context, team(*group, context.config, 0));
    followers.wait();
    return result;
  } catch (const Failure& failure) {
    if (failure.code() == kLost) followers.check_soon();
    throw;
  }
}

int follow_in_team(const config::JobConfig& config, const std::string& address, std::uint32_t rank,
                   const data::Dataset& dataset, const job::StepBudget& plan,
                   const std::optional<checkpoint::Found>& resume) {
  if (rank >= config.workers)
    throw UserError(fmt::format("--team-rank {}: the team has {} workers, from 0", rank, config.workers));
  const auto group = training::AllreduceGroup::join(address, rank, config.workers);
  group->meet();
  const optimizer::Optimizer rule(config.optimizer.options(), {});
  (void)training::train_single(
      {network_options(config), config.batch_size, config.epochs, config.max_steps, config.seed,
       config.optimizer.options(), config.optimizer.schedule(plan.total), config.threads_per_loader(),
       single_start(resume, rule), team(*group, config, rank)},
      dataset, {});
  return kSuccess;
}

}  // namespace capstan::cli
