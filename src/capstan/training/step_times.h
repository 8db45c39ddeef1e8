#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "capstan/base/time.h"

namespace capstan::training {

// When the parts of one phase of a step began and ended. A part that a phase does not have takes no time:
// its begin equals its end.
struct PhaseTimes {
  TimePoint forward_begin{}, forward_end{};
  TimePoint backward_end{};                      // begins with forward_end
  TimePoint exchange_begin{}, exchange_end{};    // push and pull, or the sum over a group
  TimePoint optimizer_begin{}, optimizer_end{};  // of this process's own weights
};

// One step of a training loop. With local steps, only a step that ends a round has an exchange.
struct StepTimes {
  std::uint64_t epoch = 0, index = 0;  // from 0; the index is that in the epoch
  std::uint64_t samples = 0;           // of this process
  double loss = 0;                     // of its last phase
  TimePoint begin{};                   // asks for the batch
  TimePoint data_end{};                // has it
  TimePoint end{};
  std::span<const PhaseTimes> phases;  // valid during the call
};

// Called after each step on the training thread.
using StepObserver = std::function<void(const StepTimes&)>;

}  // namespace capstan::training
