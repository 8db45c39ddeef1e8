#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

constexpr Initializer kInitializer{Initializer::Kind::kInputs};
constexpr Initializer kLinearInitializer{Initializer::Kind::kUniform, 0, true};

// Batch norm first, then the convolution.
struct NormConv {
  BatchNorm norm;
  Conv conv;

  at::Tensor operator()(const at::Tensor& x) const { return conv(rectified(norm(x))); }
};

struct DenseLayer {
  NormConv narrow, grow;
};

class DenseNet final : public Network {
 public:
  explicit DenseNet(const ModelOptions& options)
      : stem_(conv("features.conv0", options.channels, 2 * kGrowth, same(7, 2), kInitializer)),
        stem_norm_(norm("features.norm0", 2 * kGrowth)) {
    std::int64_t in = 2 * kGrowth;
    const int blocks = std::size(layouts::kDenseNetLayers);
    for (int block = 1; block <= blocks; ++block) {
      auto& layers = blocks_.emplace_back();
      for (int layer = 1; layer <= layouts::kDenseNetLayers[block - 1]; ++layer, in += kGrowth) {
        const auto at = fmt::format("features.denseblock{}.denselayer{}", block, layer);
        layers.push_back({norm_conv(at + ".norm1", at + ".conv1", in, 4 * kGrowth, 1),
                          norm_conv(at + ".norm2", at + ".conv2", 4 * kGrowth, kGrowth, 3)});
      }
      if (block == blocks) break;
      const auto at = fmt::format("features.transition{}", block);
      transitions_.push_back(norm_conv(at + ".norm", at + ".conv", in, in / 2, 1));
      in /= 2;
    }
    last_norm_ = norm("features.norm5", in);
    classifier_ = linear("classifier", in, options.classes, kLinearInitializer);
    dropout_ = dropout(options.dropout.value_or(0));
  }

  at::Tensor forward(const at::Tensor& images) override {
    // ReLU after max pooling gives the same result on a quarter of the elements.
    auto x = rectified(at::max_pool2d(stem_norm_(stem_(images)), 3, 2, 1));
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      std::vector<at::Tensor> features = {x};
      for (const auto& layer : blocks_[block])
        features.push_back(dropout_(layer.grow(layer.narrow(at::cat(features, 1)))));
      x = at::cat(features, 1);
      if (block < transitions_.size()) x = at::avg_pool2d(transitions_[block](x), 2);
    }
    return classifier_(averaged(rectified(last_norm_(x))));
  }

 private:
  static constexpr auto kGrowth = layouts::kDenseNetGrowth;

  NormConv norm_conv(const std::string& norm_name, const std::string& conv_name, std::int64_t in,
                     std::int64_t out, std::int64_t size) {
    const auto n = norm(norm_name, in);
    return {n, conv(conv_name, in, out, same(size), kInitializer)};
  }

  Conv stem_;
  BatchNorm stem_norm_;
  std::vector<std::vector<DenseLayer>> blocks_;
  std::vector<NormConv> transitions_;
  BatchNorm last_norm_;
  Linear classifier_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_densenet(const std::string&, const ModelOptions& options) {
  return std::make_unique<DenseNet>(options);
}

}  // namespace capstan::models
