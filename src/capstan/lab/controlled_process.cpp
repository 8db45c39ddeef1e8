#include "capstan/lab/controlled_process.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include <unistd.h>

#include "capstan/base/failure.h"

namespace capstan::lab {

ControlledProcess::ControlledProcess() : output_(::dup(STDOUT_FILENO)) {
  std::fflush(stdout);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

std::optional<Command> ControlledProcess::next() {
  std::string line;
  if (!std::getline(std::cin, line)) return {};
  return Command::parse(line);
}

void ControlledProcess::answer(const Answer& answer) {
  const auto line = answer.line();
  const std::lock_guard lock(mutex_);
  for (std::size_t written = 0; written < line.size();) {
    const auto n = ::write(output_.get(), line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failure(kLost, std::string("the launcher is gone: ") + std::strerror(errno));
    written += static_cast<std::size_t>(n);
  }
}

void ControlledProcess::report_step(std::uint64_t step, std::uint64_t of) {
  const auto now = SteadyClock::now();
  if (step < of && now - reported_ < kInterval) return;
  reported_ = now;
  Answer progress;
  progress.progress = {step, of};
  answer(progress);
}

}  // namespace capstan::lab
