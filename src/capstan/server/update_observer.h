#pragma once

#include <cstdint>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/time.h"

namespace capstan::server {

// One update of one parameter group on one server. The contributions of all updates are enough to repeat a
// run in plain arithmetic. Times are of the server's loop.
struct UpdateRecord {
  // A push that became part of the update.
  struct Contribution {
    WorkerId worker;
    Sequence push;
    StepCount steps;  // computed by the worker, including this push's
    std::uint32_t samples = 0;
    Version base;         // of this group, in the weights that the push was computed on
    TimePoint arrived{};  // at this server
  };

  std::uint32_t group = 0;
  Version version;                          // of the group, after this update
  std::vector<Contribution> contributions;  // at least one, in the order of their arrival
  TimePoint applied{};                      // when the weights had this version
  TimePoint answered{};         // it was applied, and all workers of its contributions had been answered
  Duration applying{};          // duration of the pass, which may copy the weights to workers, too
  std::size_t queue_depth = 0;  // operations before the update, when it was ordered
  std::uint64_t bytes_in = 0;   // of the contributions, read in shared memory or received
  // Of the answers, in the same way. An answer has all groups; the first group of a worker's push counts it.
  std::uint64_t bytes_out = 0;

  TimePoint first() const { return contributions.front().arrived; }
  TimePoint last() const { return contributions.back().arrived; }
};

// Receives a server's records. Called on the thread of the server's loop, for each update once it has been
// answered; so the order of the calls may differ from that of the updates.
class UpdateObserver {
 public:
  virtual ~UpdateObserver() = default;
  virtual void on_update(const UpdateRecord& record) = 0;
};

}  // namespace capstan::server
