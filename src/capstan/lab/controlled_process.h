#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"
#include "capstan/lab/control.h"

namespace capstan::lab {

// A process's side of control.h. Thread-safe. From construction on, what the process writes to standard
// output goes to standard error: plug-ins may print.
class ControlledProcess {
 public:
  ControlledProcess();

  // The next command; none at the end of input. Throws std::runtime_error for another line.
  std::optional<Command> next();
  void answer(const Answer& answer);
  // The same for progress, a few times a second.
  void report_step(std::uint64_t step, std::uint64_t of);

 private:
  static constexpr auto kInterval = std::chrono::milliseconds(100);

  std::mutex mutex_;
  UniqueFd output_;
  TimePoint reported_{};
};

}  // namespace capstan::lab
