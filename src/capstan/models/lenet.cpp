#include <ATen/ops/max_pool2d.h>

#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

class LeNet final : public Network {
 public:
  explicit LeNet(std::int64_t classes)
      : conv1_(conv_with_bias("conv1", 1, 20, valid(5), {})),
        conv2_(conv_with_bias("conv2", 20, 50, valid(5), {})),
        fc1_(linear("fc1", 50 * 4 * 4, 500, {})),
        fc2_(linear("fc2", 500, classes, {})) {}

  at::Tensor forward(const at::Tensor& images) override {
    // ReLU after max pooling gives the same values and gradients on a quarter of the elements.
    auto x = rectified(at::max_pool2d(conv1_(images), 2));
    x = rectified(at::max_pool2d(conv2_(x), 2));
    return fc2_(rectified(fc1_(x.flatten(1))));
  }

 private:
  Conv conv1_, conv2_;
  Linear fc1_, fc2_;
};

}  // namespace

std::unique_ptr<Model> make_lenet(const std::string&, const ModelOptions& options) {
  return std::make_unique<LeNet>(options.classes);
}

}  // namespace capstan::models
