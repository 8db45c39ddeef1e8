#pragma once

#include <cstdint>
#include <functional>

namespace capstan::server {

// What a server is doing, from its start to its end.
enum class Phase : std::uint8_t {
  kSeekingLeader,      // follower: not taken in yet
  kLoadingCheckpoint,  // reads its part of a checkpoint
  kAwaitingModel,      // no worker has brought the layout
  kAwaitingWeights,    // no worker has brought the initial weights
  kServing,
  kSavingLast,         // leader: every worker has ended; the last checkpoint is being written
  kAwaitingObservers,  // leader: somebody may still read the weights
  kDraining,           // the outcome is certain; the last update is still running
  kEnded
};

const char* name(Phase phase);
// The one table of transitions.
bool may_follow(Phase from, Phase to);

enum class Outcome {
  kRunning,
  kFinished,
  kAllWorkersLost,
  kLeaderLost,
  kFollowerLost,
  kCheckpointUnreadable,  // the one to begin from
};

// The phase of one server and how its job ends. Owned by the server's loop; not thread-safe.
class Lifecycle {
 public:
  // `is_idle`: no order is being executed. `on_end` runs once.
  Lifecycle(Phase first, std::function<bool()> is_idle, std::function<void(Outcome)> on_end);

  Phase phase() const { return phase_; }
  Outcome outcome() const { return outcome_; }
  // The job goes on: the outcome is not certain.
  bool is_open() const { return phase_ != Phase::kDraining && phase_ != Phase::kEnded; }

  // Checks the table of transitions. Nothing happens where the phase is the same.
  void enter(Phase next);
  // The outcome is certain: ends now, or when settle() finds the last order executed.
  void drain(Outcome outcome);
  void settle();
  // Ends at once.
  void end(Outcome outcome);

 private:
  const std::function<bool()> is_idle_;
  const std::function<void(Outcome)> on_end_;
  Phase phase_;
  Outcome outcome_ = Outcome::kRunning;
  Outcome coming_ = Outcome::kRunning;  // while draining
};

}  // namespace capstan::server
