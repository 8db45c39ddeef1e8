#pragma once

#include "capstan/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capstan/join_options.h"
#include "capstan/layout.h"
#include "capstan/status.h"

namespace capstan {

// What a worker reports with a push. The servers show it; it does not change the update.
struct StepReport {
  std::uint32_t samples = 0;   // that the pushed array was computed from
  float loss = 0;              // mean over the samples
  double compute_seconds = 0;  // since the last push
  double data_seconds = 0;     // waiting for the samples
  std::uint64_t steps = 1;     // computed since the last push
};

// The servers' answer to a pull or a push.
struct Update {
  std::uint64_t version = 0;  // of the new weights: the number of updates that they have had
  std::uint64_t applied = 0;  // the version that the push became part of; 0 if it was dropped, and for a pull
  bool stop = false;          // the job ends: call leave()
};

// A worker of a job: pushes one flat array of floats and pulls another, independent of any model. Call it
// from one thread at a time. Between calls, a thread of its own sends heartbeats, so a step may take any
// time. A wrong argument throws UserError; a failure of the job, such as a lost server, is a Status.
//
// The job's strategy decides what an update does with pushes and how long push_pull() waits. Strategies with
// local steps (diloco, fedavg …) expect a trainer in the worker: join() refuses them.
class Worker {
 public:
  // Joins the job and declares its tensors; all workers must declare the same. `initial` holds layout.size()
  // elements; it is copied, and becomes version 0 of the weights if the servers have none yet.
  static Result<Worker> join(const JoinOptions& options, const FlatLayout& layout,
                             std::span<const float> initial);
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  // A worker that has not left counts as lost; the job continues without it.
  ~Worker();

  std::uint32_t rank() const;
  std::uint32_t workers() const;  // that the job expects
  std::uint32_t servers() const;
  std::string strategy() const;   // as the server names it: "sync", "ssp:4" …
  std::string transport() const;  // of the connection to the leader: "local" or "ucx"
  std::uint64_t version() const;  // of the weights; 0 before the first pull()
  const FlatLayout& layout() const;

  // The flat array to push, and its part for one tensor, by index or by name. Writable between an answer and
  // the next push_pull(). The gaps of the layout must stay zero. Valid as long as the Worker, at a fixed
  // address, also if the Worker is moved.
  std::span<float> gradients() const;
  std::span<float> gradients(std::size_t tensor) const;
  std::span<float> gradients(std::string_view tensor) const;
  // The flat weights, and one tensor of them: one version, unchanged between an answer and the next
  // push_pull(); other workers may change them after leave(). Same lifetime as gradients().
  std::span<const float> weights() const;
  std::span<const float> weights(std::size_t tensor) const;
  std::span<const float> weights(std::string_view tensor) const;

  // Pulls the first weights. Returns when all workers have joined and the job begins.
  Result<Update> pull();
  // Pushes gradients() and waits for the weights that the strategy releases. The wait has no deadline,
  // because a slow worker may delay it; it ends with a failure if a server is lost.
  Result<Update> push_pull(const StepReport& report = {});
  // Leaves the job, and waits at most a second for the servers' confirmation. Later calls do nothing; later
  // pulls and pushes return StatusCode::kClosed.
  void leave();

 private:
  class Impl;
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace capstan
