#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/time.h"
#include "capstan/metrics/evaluation.h"

namespace capstan::job {

// Evaluates flat weights and buffers on the test set; none if `cancel` is set meanwhile. Called on a separate
// thread. Throws UserError for wrong input, such as images that cannot be read.
using Evaluate = std::function<std::optional<metrics::Evaluation>(
    std::vector<float> weights, std::vector<float> buffers, const std::atomic<bool>& cancel)>;

// Evaluates one version at a time on a background thread. Use from one thread.
class BackgroundEvaluation {
 public:
  struct Outcome {
    Version version;
    double seconds = 0;  // of training until that version
    std::optional<metrics::Evaluation> test;
    std::exception_ptr error;    // why `test` is none; null if cancelled
    std::string reason() const;  // the error's text; empty without one
  };

  explicit BackgroundEvaluation(Evaluate evaluate);
  // Cancels a running evaluation and waits for its end.
  ~BackgroundEvaluation();

  bool busy() const { return running_.valid(); }
  // Only if not busy().
  void start(Version version, double seconds, std::vector<float> weights, std::vector<float> buffers);
  // The outcome, once; waits up to `most` for it.
  std::optional<Outcome> poll(Duration most = {});
  // Cancels the running evaluation and all later ones.
  void cancel() { cancel_ = true; }

 private:
  const Evaluate evaluate_;
  std::atomic<bool> cancel_ = false;
  Version version_;
  double seconds_ = 0;
  std::future<std::optional<metrics::Evaluation>> running_;
};

}  // namespace capstan::job
