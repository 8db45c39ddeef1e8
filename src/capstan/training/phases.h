#pragma once

#include <cstdint>
#include <vector>

#include "capstan/layout.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// The phases of a task's step. In each, only its own parameters have gradients, so that backward computes no
// others. Not thread-safe.
class Phases {
 public:
  // `task` must outlive this object. Throws UserError for a parameter without a phase, and a phase without
  // parameters.
  Phases(Task& task, const FlatLayout& layout);
  Phases(const Phases&) = delete;
  Phases& operator=(const Phases&) = delete;
  ~Phases();  // every parameter has gradients again

  std::uint32_t count() const { return count_; }
  void enter(std::uint32_t phase) const;

 private:
  Task& task_;
  std::uint32_t count_;
  std::vector<std::uint32_t> phase_of_;  // by parameter
};

}  // namespace capstan::training
