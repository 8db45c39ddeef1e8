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
#include "capstan/optimizer/optimizer.h"
#include "capstan/training/single.h"

namespace capstan::job {

// The checkpoints of a run without servers, written while it goes on. Use from the training thread.
class SingleCheckpoints {
 public:
  // `workers` split every step among them. `job` and `rule` must outlive it.
  SingleCheckpoints(const PreparedJob& job, const std::filesystem::path& run,
                    const optimizer::Optimizer& rule, std::uint32_t workers);
  ~SingleCheckpoints();

  void updated(const training::SingleState& state);
  // Writes the last one and waits for it, until the user has asked `stop` twice to end: then throws Failure,
  // and leaves the writing thread to the end of the process.
  void ended(const training::SingleState& state, StopToken& stop);

  std::uint64_t newest() const;  // version; 0 for none
  std::string error() const;

 private:
  class Writer;

  void begin(const training::SingleState& state);
  void wait(StopToken& stop);

  const PreparedJob& job_;
  const std::filesystem::path run_;
  const optimizer::Optimizer& rule_;
  const std::uint32_t workers_;
  std::string end_error_;
  std::unique_ptr<Writer> writer_;
};

// What a run begins with; nothing for a new one. `rule` names the arrays of the optimizer's state.
std::optional<training::SingleStart> single_start(const std::optional<checkpoint::Found>& resume,
                                                  const optimizer::Optimizer& rule);

}  // namespace capstan::job
