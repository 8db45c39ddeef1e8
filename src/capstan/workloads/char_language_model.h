#pragma once

#include <cstdint>

#include "capstan/torch/task.h"
#include "capstan/workloads/text.h"

namespace capstan::workloads {

// Predicts the next character of a text: embedding, GRU, linear layer; cross-entropy; perplexity. A sample is
// a window of consecutive characters. The hidden state is carried from each window to the next; it starts at
// zero at the begin of a text column, and after a resume.
class CharLanguageModel final : public Task {
 public:
  struct Options {
    std::int64_t window = 32;  // characters
    std::int64_t embedding = 32;
    std::int64_t hidden = 128;
    std::uint64_t init_seed = 1;
  };
  // Seeds libtorch's generator. Initial values are PyTorch's.
  CharLanguageModel(Text text, const Options& options);

  const NamedTensors& parameters() const override { return parameters_; }
  const NamedTensors& buffers() const override { return buffers_; }
  void train(bool on) override { training_ = on; }
  SplitInfo split(Split split) const override;
  Batch batch(Split split, const BatchRequest& request) override;
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override;
  std::vector<MetricSum> evaluate(const Batch& batch) override;
  std::uint64_t evaluation_batch() const override { return 16; }

 private:
  // The hidden state after a batch, and the windows that led to it.
  struct Carried {
    std::vector<std::int64_t> windows;
    at::Tensor hidden;
  };

  at::Tensor parameter(const std::string& name, at::IntArrayRef sizes, double bound);
  const std::vector<std::uint8_t>& characters(Split split) const;
  at::Tensor start_of(const at::Tensor& windows, const Carried& before) const;

  const Text text_;
  const Options options_;
  NamedTensors parameters_;
  const NamedTensors buffers_;
  at::Tensor embedding_, decoder_weight_, decoder_bias_;
  std::vector<at::Tensor> gru_;
  bool training_ = true;
  Carried trained_, tested_;
};

}  // namespace capstan::workloads
