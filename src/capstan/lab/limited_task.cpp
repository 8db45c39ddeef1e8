#include "capstan/lab/limited_task.h"

#include <algorithm>

namespace capstan::lab {
namespace {

class LimitedTask final : public Task {
 public:
  LimitedTask(std::unique_ptr<Task> task, std::uint64_t samples)
      : task_(std::move(task)), samples_(samples) {}

  const NamedTensors& parameters() const override { return task_->parameters(); }
  const NamedTensors& buffers() const override { return task_->buffers(); }
  void train(bool on) override { task_->train(on); }
  std::vector<StepPhase> phases() const override { return task_->phases(); }
  SplitInfo split(Split split) const override {
    auto info = task_->split(split);
    if (split == Split::kTrain) info.samples = std::min(info.samples, samples_);
    return info;
  }
  Batch batch(Split split, const BatchRequest& request) override { return task_->batch(split, request); }
  std::unique_ptr<BatchStream> stream(Split split, BatchSequence sequence, unsigned threads) override {
    return task_->stream(split, std::move(sequence), threads);
  }
  at::Tensor loss(std::size_t phase, const Batch& batch) override { return task_->loss(phase, batch); }
  std::vector<Metric> metrics() const override { return task_->metrics(); }
  std::vector<MetricSum> evaluate(const Batch& batch) override { return task_->evaluate(batch); }
  std::uint64_t evaluation_batch() const override { return task_->evaluation_batch(); }
  bool writes_parameters() const override { return task_->writes_parameters(); }
  std::vector<std::string> warnings(Split split) const override { return task_->warnings(split); }

 private:
  const std::unique_ptr<Task> task_;
  const std::uint64_t samples_;
};

}  // namespace

std::unique_ptr<Task> limited(std::unique_ptr<Task> task, std::uint64_t samples) {
  return std::make_unique<LimitedTask>(std::move(task), samples);
}

}  // namespace capstan::lab
