#pragma once

#include "capstan/cxx20.h"

#include <memory>

#include <capstan/torch/task.h>
#include <torch/nn/module.h>

namespace capstan {

// A task whose model is a torch::nn::Module: what is left to write is data, loss and metrics. Parameters that
// do not require gradients are treated as buffers. A tensor with several names is listed once, under the
// first; the others are its aliases. The weights of torch::nn::Embedding and EmbeddingBag with sparse(true)
// are declared sparse. Not thread-safe.
class ModuleTask : public Task {
 public:
  // Register all parameters and buffers before: later ones are not trained. Throws UserError for a module
  // without trainable parameters, and for a parameter that is not of 32-bit floats on the CPU.
  explicit ModuleTask(std::shared_ptr<torch::nn::Module> module);

  const NamedTensors& parameters() const override { return parameters_; }
  const NamedTensors& buffers() const override { return buffers_; }
  void train(bool on) override { module_->train(on); }

 private:
  const std::shared_ptr<torch::nn::Module> module_;
  NamedTensors parameters_, buffers_;
};

}  // namespace capstan
