#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "capstan/checkpoint/checkpointer.h"
#include "capstan/job/environment.h"
#include "capstan/job/prepared_job.h"
#include "capstan/optimizer/spec.h"
#include "capstan/training/single.h"

namespace capstan::job {

// The checkpoints of a run without servers, written while training continues. Use from the training thread.
class SingleCheckpoints {
 public:
  // `workers`: processes that split every step. `job` and `rule` must outlive this object.
  SingleCheckpoints(const PreparedJob& job, const std::filesystem::path& run,
                    const optimizer::OptimizerSet& rules, std::uint32_t workers);
  ~SingleCheckpoints();

  void updated(const training::SingleState& state);
  // Writes the last checkpoint and waits for it; `failed` if the run ends early. On the second stop request
  // it throws Failure and does not wait for the writing thread, which then runs until the process ends.
  void ended(const training::SingleState& state, StopToken& stop, bool failed);

  std::uint64_t newest() const;  // version; 0 for none
  std::string error() const;

 private:
  class Writer;

  void begin(const training::SingleState& state);
  void wait(StopToken& stop);

  const PreparedJob& job_;
  const std::filesystem::path run_;
  const optimizer::OptimizerSet& rules_;
  const std::uint32_t workers_;
  std::string end_error_;
  std::unique_ptr<Writer> writer_;
};

// The state to resume from; none for a new run. `rule` names the arrays of optimizer state.
std::optional<training::SingleStart> single_start(const std::optional<checkpoint::Found>& resume,
                                                  const optimizer::OptimizerSet& rules);

}  // namespace capstan::job
