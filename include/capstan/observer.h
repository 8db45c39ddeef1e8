#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capstan/join_options.h"
#include "capstan/layout.h"
#include "capstan/status.h"

namespace capstan {

enum class WorkerState { kAbsent, kLive, kLeft, kLost };

// A worker, as the leader sees it.
struct WorkerStatus {
  WorkerState state = WorkerState::kAbsent;
  std::uint64_t steps = 0;  // computed
  std::uint64_t pushes = 0;
  std::uint64_t samples = 0;
  float loss = 0;  // of its last push
  double compute_seconds = 0;
  double wait_seconds = 0;    // for the servers' answers
  double data_seconds = 0;    // for samples
  double staleness_mean = 0;  // in versions, over its pushes
  std::uint64_t staleness_max = 0;
};

// A job, as the leader sees it.
struct JobStatus {
  bool started = false;   // all workers have joined
  bool finished = false;  // every worker has left or is lost
  std::uint64_t version = 0;
  double seconds = 0;  // from the start to the last update
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t dropped_pushes = 0;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  double loss = 0;  // mean over the samples of the last updates
  std::uint64_t samples = 0;
  std::vector<WorkerStatus> workers;  // by rank
};

// The weights of one version, flat by the layout.
struct Snapshot {
  std::uint64_t version = 0;
  FlatLayout layout;
  std::vector<float> weights;
};

// Watches a running job, and may stop it. No worker waits for an observer. When all workers have left, the
// servers wait until every observer is destroyed, so that it can read the last version. Call it from one
// thread at a time. A wrong argument throws UserError; a failure of the job is a Status.
class Observer {
 public:
  static Result<Observer> join(const JoinOptions& options);
  Observer(Observer&&) noexcept;
  Observer& operator=(Observer&&) noexcept;
  ~Observer();

  std::uint32_t servers() const;

  Result<JobStatus> status();
  // The weights of the first version that is at least `at_least`, or the last if the job ends before: waits
  // for that version. StatusCode::kUnavailable if no worker has joined yet, so that there are no tensors.
  Result<Snapshot> weights(std::uint64_t at_least = 0);
  // Ends the job: the answer to each worker's next push says so, and the push is dropped. Returns when the
  // leader has the request.
  Status stop(const std::string& reason);

 private:
  class Impl;
  explicit Observer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace capstan
