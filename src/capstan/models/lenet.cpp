#include "capstan/models/lenet.h"

#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "capstan/base/user_error.h"
#include "capstan/models/module_model.h"

namespace capstan::models {
namespace {

class LeNet : public torch::nn::Module {
 public:
  explicit LeNet(std::int64_t classes)
      : conv1_(register_module("conv1", torch::nn::Conv2d(1, 20, 5))),
        conv2_(register_module("conv2", torch::nn::Conv2d(20, 50, 5))),
        fc1_(register_module("fc1", torch::nn::Linear(50 * 4 * 4, 500))),
        fc2_(register_module("fc2", torch::nn::Linear(500, classes))) {}

  at::Tensor forward(const at::Tensor& images) {
    // Rectifying after pooling gives the same values and gradients as before it, on a quarter of the
    // elements.
    auto x = at::relu(at::max_pool2d(conv1_(images), 2));
    x = at::relu(at::max_pool2d(conv2_(x), 2));
    return fc2_(at::relu(fc1_(x.flatten(1))));
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

}  // namespace

std::unique_ptr<Model> make_lenet(const ModelOptions& options) {
  if (options.channels != 1 || options.height != 28 || options.width != 28) {
    throw UserError(fmt::format("lenet takes images of 1x28x28; this dataset's are {}x{}x{} (mlp takes any)",
                                options.channels, options.height, options.width));
  }
  return std::make_unique<ModuleModel<LeNet>>(options.classes);
}

}  // namespace capstan::models
