#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "capstan/checkpoint/checkpointer.h"
#include "capstan/cli/train_job.h"
#include "capstan/training/single.h"

namespace capstan::cli {

// The checkpoints of a run without servers, written while it goes on. Use from the training thread.
class AloneCheckpoints {
 public:
  // `workers` split every step among them.
  AloneCheckpoints(const TrainContext& context, const optimizer::Optimizer& rule, std::uint32_t workers);

  void updated(const training::SingleState& state);
  // Writes the last one and waits for it.
  void ended(const training::SingleState& state);

  std::uint64_t newest() const { return checkpointer_.newest().value; }  // 0 for none
  const std::string& error() const {
    return checkpointer_.error().empty() ? end_error_ : checkpointer_.error();
  }

 private:
  void begin(const training::SingleState& state);
  void run_delivered();

  const TrainContext& context_;
  const optimizer::Optimizer& rule_;
  const std::uint32_t workers_;
  std::string end_error_;
  std::mutex mutex_;  // guards what follows
  std::deque<std::function<void()>> delivered_;
  checkpoint::Background background_;
  checkpoint::Checkpointer checkpointer_;
};

// What a run begins with; nothing for a new one. `rule` names the arrays of the optimizer's state.
std::optional<training::SingleStart> single_start(const std::optional<checkpoint::Found>& resume,
                                                  const optimizer::Optimizer& rule);

}  // namespace capstan::cli
