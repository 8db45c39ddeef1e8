#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "capstan/job/events.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// Reports each worker that joins and each that is lost, once, whether the servers or the end of a process
// show it first. Another process may join with the rank of a lost worker. Not thread-safe.
class WorkerWatch {
 public:
  // `starts_workers`: the job has started the workers itself, so joins are not reported.
  WorkerWatch(std::size_t workers, bool starts_workers, Events& events);

  void update(const wire::StatusReport& status);
  // The process that the job started for this rank has failed.
  void process_ended(std::size_t rank, const std::string& why);
  // That process is lost; another may have its rank.
  bool is_lost(std::size_t rank) const { return lost_[rank] || replaced_[rank]; }
  // From now on the job ends its workers itself, and no loss is reported.
  void stop_reporting_losses() { quiet_ = true; }

 private:
  void lost(std::size_t rank, const std::string& why);

  const bool starts_workers_;
  Events& events_;
  std::vector<bool> joined_, lost_;        // by rank: reported
  std::vector<bool> given_up_, replaced_;  // by rank: lost for the servers; joined again after that
  std::size_t live_ = 0;                   // in the last status report
  bool quiet_ = false;
};

}  // namespace capstan::job
