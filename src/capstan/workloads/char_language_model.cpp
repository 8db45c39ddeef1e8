#include "capstan/workloads/char_language_model.h"

#include <cmath>
#include <utility>

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

namespace capstan::workloads {

CharLanguageModel::CharLanguageModel(Text text, const Options& options)
    : text_(std::move(text)), options_(options) {
  at::manual_seed(options.init_seed);
  const auto characters = static_cast<std::int64_t>(text_.characters.size());
  const auto gates = 3 * options.hidden;
  const auto bound = 1 / std::sqrt(static_cast<double>(options.hidden));
  embedding_ = at::randn({characters, options.embedding}).requires_grad_();
  parameters_.push_back({"embedding.weight", embedding_});
  gru_ = {parameter("gru.weight_ih_l0", {gates, options.embedding}, bound),
          parameter("gru.weight_hh_l0", {gates, options.hidden}, bound),
          parameter("gru.bias_ih_l0", {gates}, bound), parameter("gru.bias_hh_l0", {gates}, bound)};
  decoder_weight_ = parameter("decoder.weight", {characters, options.hidden}, bound);
  decoder_bias_ = parameter("decoder.bias", {characters}, bound);
}

at::Tensor CharLanguageModel::parameter(const std::string& name, at::IntArrayRef sizes, double bound) {
  const auto values = at::empty(sizes).uniform_(-bound, bound).requires_grad_();
  parameters_.push_back({name, values});
  return values;
}

const std::vector<std::uint8_t>& CharLanguageModel::characters(Split split) const {
  return split == Split::kTrain ? text_.train : text_.test;
}

// The last character is only predicted.
SplitInfo CharLanguageModel::split(Split split) const {
  const auto windows = (characters(split).size() - 1) / static_cast<std::size_t>(options_.window);
  return {windows, SampleOrder::kColumns};
}

Batch CharLanguageModel::batch(Split split, const BatchRequest& request) {
  const auto& from = characters(split);
  const auto count = static_cast<std::int64_t>(request.samples.size());
  Batch batch{at::empty({count, options_.window}, at::kLong),
              at::empty({count, options_.window}, at::kLong),
              {at::empty({count}, at::kLong)},
              request.samples.size()};
  auto *input = batch.input.data_ptr<std::int64_t>(), *target = batch.target.data_ptr<std::int64_t>(),
       *windows = batch.others[0].data_ptr<std::int64_t>();
  for (const auto sample : request.samples) {
    *windows++ = sample;
    const auto begin = static_cast<std::size_t>(sample) * static_cast<std::size_t>(options_.window);
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.window); ++i) {
      *input++ = from[begin + i];
      *target++ = from[begin + i + 1];
    }
  }
  return batch;
}

// The state that each window continues, or zero where the batch before did not end with the window before it.
at::Tensor CharLanguageModel::start_of(const at::Tensor& windows, const Carried& before) const {
  const auto count = windows.size(0);
  auto hidden = at::zeros({1, count, options_.hidden});
  const auto* const window = windows.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < std::min(count, static_cast<std::int64_t>(before.windows.size())); ++i)
    if (window[i] == before.windows[static_cast<std::size_t>(i)] + 1)
      hidden.select(1, i).copy_(before.hidden.select(1, i));
  return hidden;
}

at::Tensor CharLanguageModel::loss(std::size_t, const Batch& batch) {
  auto& carried = training_ ? trained_ : tested_;
  const auto& windows = batch.others.at(0);
  const auto start = start_of(windows, carried);
  const auto input = at::embedding(embedding_, batch.input);
  const auto [output, end] = at::gru(input, start, gru_, /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0,
                                     training_, /*bidirectional=*/false, /*batch_first=*/true);
  const auto* const first = windows.data_ptr<std::int64_t>();
  carried = {{first, first + windows.size(0)}, end.detach()};
  const auto logits = at::linear(output.flatten(0, 1), decoder_weight_, decoder_bias_);
  return at::cross_entropy_loss(logits, batch.target.flatten());
}

std::vector<Metric> CharLanguageModel::metrics() const {
  return {{"perplexity", Metric::Better::kLower, Metric::Of::kExp}, {"loss"}};
}

std::vector<MetricSum> CharLanguageModel::evaluate(const Batch& batch) {
  const auto characters = static_cast<double>(batch.target.numel());
  const auto sum = loss(0, batch).item<float>() * characters;
  return {{sum, characters}, {sum, characters}};
}

}  // namespace capstan::workloads
