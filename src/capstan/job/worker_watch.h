#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "capstan/job/events.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// Tells people which workers have come and which are lost, each once, whoever notices first: the servers, or
// the end of a process. Not thread-safe.
class WorkerWatch {
 public:
  // `starts_workers`: the job has started them itself, so that none is announced.
  WorkerWatch(std::size_t workers, bool starts_workers, Events& events);

  void look(const wire::StatusReport& status);
  void lost(std::size_t rank, const std::string& why);
  bool is_lost(std::size_t rank) const { return lost_[rank]; }
  // From now on the job ends its workers itself, and says nothing of it.
  void expect_the_end() { quiet_ = true; }

 private:
  const bool starts_workers_;
  Events& events_;
  std::vector<bool> here_, lost_;  // by rank: said so
  std::size_t live_ = 0;           // as the servers last said
  bool quiet_ = false;
};

}  // namespace capstan::job
