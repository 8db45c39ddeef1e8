#pragma once

#include <cstdint>

#include "capstan/training/dataset_task.h"

namespace capstan::workloads {

// A generative adversarial network on images of a dataset, whose labels are not used. A step has two phases:
// the discriminator learns to tell images from generated ones, then the generator learns to deceive it. The
// metric is the energy distance between test images and generated ones: 0 if the distributions are equal.
class Gan final : public training::DatasetTask {
 public:
  struct Options {
    std::int64_t noise = 64;     // inputs of the generator
    std::int64_t channels = 32;  // of the innermost convolutions
    std::uint64_t init_seed = 1;
  };
  // Seeds libtorch's generator. The training split may be absent. Throws UserError for images whose sides are
  // not multiples of 4.
  Gan(data::Dataset images, const Options& options);

  const NamedTensors& parameters() const override { return parameters_; }
  const NamedTensors& buffers() const override { return buffers_; }
  void train(bool) override {}  // has no layer that differs
  std::vector<StepPhase> phases() const override;
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override;
  std::vector<MetricSum> evaluate(const Batch& batch) override;

  // Images from random noise of libtorch's generator.
  at::Tensor generate(std::int64_t count) const;
  // How real images appear: a logit for each.
  at::Tensor discriminate(const at::Tensor& images) const;

 private:
  struct Layer {
    at::Tensor weight, bias;
  };

  Layer layer(const std::string& name, at::IntArrayRef weight, std::int64_t outputs);

  const Options options_;
  NamedTensors parameters_;
  const NamedTensors buffers_;
  Layer generator_in_, generator_middle_, generator_out_;
  Layer discriminator_in_, discriminator_middle_, discriminator_out_;
};

}  // namespace capstan::workloads
