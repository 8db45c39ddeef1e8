#include "capstan/training/loader.h"

#include <utility>

#include <ATen/ops/from_blob.h>

#include "capstan/base/check.h"

namespace capstan::training {

Loader::Loader(const data::ImageSource& source, unsigned threads, BatchSequence sequence) : source_(source) {
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
  const auto& s = source_.shape();
  const auto count = static_cast<std::int64_t>(rendered->labels.size());
  return {at::from_blob(rendered->images.data(), {count, s.channels, s.height, s.width},
                        channels_last_strides(s), at::kFloat),
          at::from_blob(const_cast<std::int64_t*>(rendered->labels.data()), {count}, at::kLong),
          {},
          rendered->labels.size()};
}

}  // namespace capstan::training
