#include "capstan/training/loader.h"

#include <utility>

#include <ATen/ops/from_blob.h>

#include "capstan/base/check.h"

namespace capstan::training {

Loader::Loader(const data::SampleSource& source, unsigned threads, BatchSequence sequence) : source_(source) {
  if (threads == 0 || source.is_immediate()) {
    sequence_ = std::move(sequence);
  } else {
    prefetcher_.emplace(source, threads, std::move(sequence));
  }
}

Batch Loader::next() {
  if (!prefetcher_) {
    const auto request = sequence_();
    CAPSTAN_CHECK(request, "the sequence has another batch");
    return gather(source_, request->samples, request->epoch);
  }
  const auto rendered = prefetcher_->next();
  CAPSTAN_CHECK(rendered, "the sequence has another batch");
  const auto& shape = source_.shape();
  const auto count = static_cast<std::int64_t>(rendered->samples);
  const auto [sizes, strides] = input_layout(shape, count);
  return {at::from_blob(rendered->inputs.data(), sizes, strides, at::kFloat),
          shape.has_classes()
              ? at::from_blob(rendered->labels.data(), {count}, at::kLong)
              : at::from_blob(rendered->targets.data(), target_sizes(shape, count), at::kFloat),
          {},
          rendered->samples};
}

}  // namespace capstan::training
