#pragma once

#include "capstan/base/unique_fd.h"

namespace capstan::cli {

// Turns SIGINT and SIGTERM into something to read, instead of the end of the process. Make it before any
// thread starts: threads inherit that these signals wait. Not thread-safe.
class Interrupts {
 public:
  Interrupts();
  // How often the user has asked to end so far.
  int count();
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  int count_ = 0;
};

}  // namespace capstan::cli
