#pragma once

#include <atomic>

#include "capstan/base/unique_fd.h"
#include "capstan/job/environment.h"

namespace capstan::cli {

// Turns SIGINT, SIGTERM, SIGHUP and launch::kStopSignal into stop requests; signals that were ignored when
// the program started (nohup, a launcher's children) stay ignored. Create it before any thread starts:
// threads inherit the blocked signals. Thread-safe.
//
// Also ignores SIGPIPE: a closed pipe (`| head`) must not end a job.
class Interrupts final : public job::StopToken {
 public:
  Interrupts();
  int requests() override;
  int fd() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::atomic<int> count_ = 0;
};

// Ignores SIGHUP again if it was ignored at the start: UCX installs its own handler when it is loaded. Call
// it before execv.
void keep_hangup_ignored();

}  // namespace capstan::cli
