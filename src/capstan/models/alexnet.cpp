#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

class AlexNet final : public Network {
 public:
  explicit AlexNet(const ModelOptions& options)
      : conv1_(conv_with_bias("features.0", options.channels, 64, {{11, 11}, 4, {2, 2}}, {})),
        conv2_(conv_with_bias("features.3", 64, 192, same(5), {})),
        conv3_(conv_with_bias("features.6", 192, 384, same(3), {})),
        conv4_(conv_with_bias("features.8", 384, 256, same(3), {})),
        conv5_(conv_with_bias("features.10", 256, 256, same(3), {})),
        fc1_(linear("classifier.1", 256 * 6 * 6, 4096, {})),
        fc2_(linear("classifier.4", 4096, 4096, {})),
        fc3_(linear("classifier.6", 4096, options.classes, {})),
        dropout_(dropout(options.dropout.value_or(0.5))) {}

  at::Tensor forward(const at::Tensor& images) override {
    // ReLU after max pooling gives the same result on a quarter of the elements.
    auto x = rectified(at::max_pool2d(conv1_(images), 3, 2));
    x = rectified(at::max_pool2d(conv2_(x), 3, 2));
    x = rectified(conv3_(x));
    x = rectified(conv4_(x));
    x = rectified(at::max_pool2d(conv5_(x), 3, 2));
    x = at::adaptive_avg_pool2d(x, {6, 6}).flatten(1);
    x = rectified(fc1_(dropout_(x)));
    x = rectified(fc2_(dropout_(x)));
    return fc3_(x);
  }

 private:
  Conv conv1_, conv2_, conv3_, conv4_, conv5_;
  Linear fc1_, fc2_, fc3_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_alexnet(const std::string&, const ModelOptions& options) {
  return std::make_unique<AlexNet>(options);
}

}  // namespace capstan::models
