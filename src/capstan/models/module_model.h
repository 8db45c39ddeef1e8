#pragma once

#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include "capstan/models/model.h"

namespace capstan::models {

// A Model made of a torch::nn::Module with `at::Tensor forward(at::Tensor)`.
template <class Module>
class ModuleModel final : public Model {
 public:
  template <class... Arguments>
  explicit ModuleModel(Arguments&&... arguments)
      : module_(std::make_shared<Module>(std::forward<Arguments>(arguments)...)) {
    for (const auto& p : module_->named_parameters()) parameters_.push_back({p.key(), p.value()});
    for (const auto& b : module_->named_buffers()) buffers_.push_back({b.key(), b.value()});
  }

  at::Tensor forward(const at::Tensor& images) override { return module_->forward(images); }
  const std::vector<NamedTensor>& parameters() const override { return parameters_; }
  const std::vector<NamedTensor>& buffers() const override { return buffers_; }
  void train(bool on) override { module_->train(on); }

 private:
  std::shared_ptr<Module> module_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
};

}  // namespace capstan::models
