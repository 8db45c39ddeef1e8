#pragma once

#include "capstan/base/unique_fd.h"
#include "capstan/job/environment.h"

namespace capstan::cli {

// Turns SIGINT, SIGTERM and SIGHUP into something to read, instead of the end of the process; those that
// were ignored when the program started (nohup, a launcher's children) stay so. Make it before any thread
// starts: threads inherit that these signals wait. Not thread-safe.
//
// A closed pipe (`| head`) is no reason to end a job: writing to it fails from now on, and nothing else.
class Interrupts final : public job::StopToken {
 public:
  Interrupts();
  int requests() override;
  int fd() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
  int count_ = 0;
};

// UCX takes SIGHUP for itself as it is loaded. Before another program is executed in this process: what was
// ignored is ignored again.
void keep_hangup_ignored();

}  // namespace capstan::cli
