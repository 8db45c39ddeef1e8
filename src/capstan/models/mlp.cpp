#include "capstan/models/mlp.h"

#include <torch/nn/modules/linear.h>

#include "capstan/models/module_model.h"

namespace capstan::models {
namespace {

class Mlp : public torch::nn::Module {
 public:
  Mlp(std::int64_t inputs, std::int64_t classes)
      : fc1_(register_module("fc1", torch::nn::Linear(inputs, 128))),
        fc2_(register_module("fc2", torch::nn::Linear(128, classes))) {}

  at::Tensor forward(const at::Tensor& images) { return fc2_(at::relu(fc1_(images.flatten(1)))); }

 private:
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const ModelOptions& options) {
  return std::make_unique<ModuleModel<Mlp>>(options.channels * options.height * options.width,
                                            options.classes);
}

}  // namespace capstan::models
