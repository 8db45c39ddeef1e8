#pragma once

#include <cstdint>
#include <functional>

namespace capstan::server {

// The phases of a server, from start to end.
enum class Phase : std::uint8_t {
  kStarting,           // its role is being created
  kSeekingLeader,      // follower: has not joined the leader
  kLoadingCheckpoint,  // reads its part of a checkpoint
  kAwaitingModel,      // no worker has sent the layout
  kAwaitingWeights,    // no worker has sent the initial weights
  kServing,
  kSavingLast,         // leader: every worker has ended; the last checkpoint is being written
  kAwaitingObservers,  // leader: an observer may still read the weights
  kDraining,           // the outcome is decided; the last order is still running
  kEnded
};

// The one table of transitions.
bool may_follow(Phase from, Phase to);

enum class Outcome {
  kRunning,
  kFinished,
  kAllWorkersLost,
  kLeaderLost,
  kFollowerLost,
  kCheckpointUnreadable,  // the one to resume from
};

// The phase of one server and the outcome of its job. Owned by the server's loop; not thread-safe.
class Lifecycle {
 public:
  // `is_idle`: no order is being executed. `on_end` runs once.
  Lifecycle(std::function<bool()> is_idle, std::function<void(Outcome)> on_end);

  Phase phase() const { return phase_; }
  Outcome outcome() const { return outcome_; }
  // The outcome is not decided yet.
  bool is_open() const { return phase_ != Phase::kDraining && phase_ != Phase::kEnded; }

  // Checks the table of transitions. Entering the current phase has no effect.
  void enter(Phase next);
  // The outcome is decided: ends now, or when settle() finds that the last order is done.
  void drain(Outcome outcome);
  void settle();
  // Ends at once.
  void end(Outcome outcome);

 private:
  const std::function<bool()> is_idle_;
  const std::function<void(Outcome)> on_end_;
  Phase phase_ = Phase::kStarting;
  Outcome outcome_ = Outcome::kRunning;
  Outcome pending_outcome_ = Outcome::kRunning;  // while draining
};

}  // namespace capstan::server
