#include "capstan/torch/task.h"

#include <utility>

#include "capstan/base/check.h"

namespace capstan {
namespace {

class OnDemand final : public BatchStream {
 public:
  OnDemand(Task& task, Split split, BatchSequence sequence)
      : task_(task), split_(split), sequence_(std::move(sequence)) {}

  Batch next() override {
    const auto request = sequence_();
    CAPSTAN_CHECK(request, "the sequence has another batch");
    return task_.batch(split_, *request);
  }

 private:
  Task& task_;
  const Split split_;
  const BatchSequence sequence_;
};

}  // namespace

std::unique_ptr<BatchStream> Task::stream(Split split, BatchSequence sequence, unsigned) {
  return std::make_unique<OnDemand>(*this, split, std::move(sequence));
}

}  // namespace capstan
