#include "capstan/job/background_evaluation.h"

#include <exception>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::job {

std::string BackgroundEvaluation::Outcome::reason() const {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown error";
  }
  return {};
}

BackgroundEvaluation::BackgroundEvaluation(Evaluate evaluate) : evaluate_(std::move(evaluate)) {}

BackgroundEvaluation::~BackgroundEvaluation() {
  cancel();
  if (busy()) running_.wait();
}

void BackgroundEvaluation::start(Version version, double seconds, std::vector<float> weights,
                                 std::vector<float> buffers) {
  CAPSTAN_CHECK(!busy(), "one evaluation at a time");
  version_ = version;
  seconds_ = seconds;
  running_ = std::async(std::launch::async, [this, w = std::move(weights), b = std::move(buffers)]() mutable {
    return evaluate_(std::move(w), std::move(b), cancel_);
  });
}

std::optional<BackgroundEvaluation::Outcome> BackgroundEvaluation::poll(Duration most) {
  if (!busy() || running_.wait_for(most) != std::future_status::ready) return {};
  Outcome outcome{version_, seconds_, {}, {}};
  try {
    outcome.test = running_.get();
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

}  // namespace capstan::job
