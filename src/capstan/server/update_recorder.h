#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "capstan/server/update_observer.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// Makes records of updates from the events of one server: pushes, orders and answers. Versions are those of a
// job that was not resumed. Owned by the server's loop; not thread-safe.
class UpdateRecorder {
 public:
  explicit UpdateRecorder(UpdateObserver& observer) : observer_(observer) {}

  // A push is staged; a repeated one changes nothing.
  void pushed(const wire::Push& push, TimePoint now);
  // A push becomes part of the sum for the next update.
  void accumulated(const wire::AccumulateOrder& order, std::uint64_t bytes);
  // An update is queued behind `queue_depth` operations. Returns its number, for applied().
  std::uint64_t ordered(const wire::ApplyOrder& order, std::size_t queue_depth, std::uint64_t bytes);
  void applied(std::uint64_t number, Duration applying, TimePoint now);
  // A worker will be answered with the weights after all updates so far.
  void answering(WorkerId worker) { given_[worker] = versions_; }
  void answered(WorkerId worker, std::uint64_t bytes, TimePoint now);
  // The worker has left or is lost: it counts as answered.
  void ended(WorkerId worker, TimePoint now);

 private:
  // The newest push of a worker, and the version of each group that it was computed on.
  struct Arrival {
    wire::Push push;
    TimePoint at{};
    std::vector<Version> given;
  };
  // An update that is not complete yet.
  struct Open {
    std::uint64_t number = 0;
    UpdateRecord record;
    std::set<WorkerId> waiting;  // workers of its contributions that have not been answered
    bool is_applied = false;
  };

  void add(Open& open, const wire::Contribution& contribution, std::uint32_t group) const;
  void release(Open& open, WorkerId worker, std::uint64_t& bytes, TimePoint now);
  void report_complete();

  UpdateObserver& observer_;
  std::map<WorkerId, Arrival> arrivals_;
  std::vector<Version> versions_;                   // by group, after all orders so far
  std::map<WorkerId, std::vector<Version>> given_;  // in the last answer
  Open sum_;                                        // what is accumulated for the next update
  std::list<Open> open_;                            // in the order of their orders
  std::uint64_t next_ = 1;
};

}  // namespace capstan::server
