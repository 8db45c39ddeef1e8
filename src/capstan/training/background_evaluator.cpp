#include "capstan/training/background_evaluator.h"

#include "capstan/base/check.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"

namespace capstan::training {

BackgroundEvaluator::BackgroundEvaluator(std::unique_ptr<models::Model> model, FlatLayout layout,
                                         const data::ImageSource& test)
    : model_(std::move(model)), layout_(std::move(layout)), test_(test) {}

BackgroundEvaluator::~BackgroundEvaluator() {
  if (busy()) running_.wait();
}

void BackgroundEvaluator::start(std::vector<float> weights, std::span<const float> buffers) {
  CAPSTAN_CHECK(!busy(), "one evaluation at a time");
  weights_ = std::move(weights);
  models::bind_parameters(*model_, layout_, weights_.data());
  models::copy_buffers_in(*model_, buffers);
  running_ = std::async(std::launch::async, [this] { return evaluate(*model_, test_); });
}

std::optional<Evaluation> BackgroundEvaluator::poll() {
  if (!busy() || running_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  return running_.get();
}

Evaluation BackgroundEvaluator::wait() {
  return running_.get();
}

}  // namespace capstan::training
