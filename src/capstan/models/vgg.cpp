#include <array>
#include <optional>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

using layouts::VggRecipe;

constexpr Initializer kConvInitializer{Initializer::Kind::kOutputs, 0, true};
constexpr Initializer kLinearInitializer{Initializer::Kind::kNormal, 0.01, true};

struct Unit {
  Conv conv;
  std::optional<BatchNorm> norm;
  bool last_of_stage;

  at::Tensor operator()(const at::Tensor& x) const {
    auto y = conv(x);
    if (norm) y = (*norm)(y);
    // ReLU after max pooling gives the same result on a quarter of the elements.
    return rectified(last_of_stage ? at::max_pool2d(y, 2) : y);
  }
};

class Vgg : public Network {
 public:
  at::Tensor features(const at::Tensor& images) const {
    auto x = images;
    for (const auto& unit : units_) x = unit(x);
    return x;
  }

 protected:
  Vgg(const VggRecipe& recipe, std::int64_t channels) {
    int index = 0;  // counts the layers without parameters too: ReLU and pooling
    auto in = channels;
    for (int stage = 0; stage < 5; ++stage) {
      const auto out = VggRecipe::channels(stage);
      for (int i = 1; i <= recipe.convolutions[stage]; ++i) {
        auto& unit = units_.emplace_back(
            Unit{conv_with_bias(fmt::format("features.{}", index++), in, out, same(3), kConvInitializer),
                 {},
                 i == recipe.convolutions[stage]});
        if (recipe.norm) unit.norm = norm(fmt::format("features.{}", index++), out);
        ++index;
        in = out;
      }
      ++index;
    }
  }

 private:
  std::vector<Unit> units_;
};

// As in torchvision: features pooled to 7x7, then two hidden layers of 4096.
class ImageNetVgg final : public Vgg {
 public:
  ImageNetVgg(const VggRecipe& recipe, const ModelOptions& options)
      : Vgg(recipe, options.channels),
        fc_{linear("classifier.0", 512 * 7 * 7, 4096, kLinearInitializer),
            linear("classifier.3", 4096, 4096, kLinearInitializer),
            linear("classifier.6", 4096, options.classes, kLinearInitializer)},
        dropout_(dropout(options.dropout.value_or(0.5))) {}

  at::Tensor forward(const at::Tensor& images) override {
    auto x = at::adaptive_avg_pool2d(features(images), {7, 7}).flatten(1);
    x = dropout_(rectified(fc_[0](x)));
    x = dropout_(rectified(fc_[1](x)));
    return fc_[2](x);
  }

 private:
  std::array<Linear, 3> fc_;
  Dropout dropout_;
};

// The usual variant for 32x32 images, as in ps_pytorch: dropout before each of two hidden layers of 512. The
// features of larger images are averaged first.
class CifarVgg final : public Vgg {
 public:
  CifarVgg(const VggRecipe& recipe, const ModelOptions& options)
      : Vgg(recipe, options.channels),
        fc_{linear("classifier.1", 512, 512, {}), linear("classifier.4", 512, 512, {}),
            linear("classifier.6", 512, options.classes, {})},
        dropout_(dropout(options.dropout.value_or(0.5))) {}

  at::Tensor forward(const at::Tensor& images) override {
    auto x = averaged(features(images));
    x = rectified(fc_[0](dropout_(x)));
    x = rectified(fc_[1](dropout_(x)));
    return fc_[2](x);
  }

 private:
  std::array<Linear, 3> fc_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_vgg(const std::string& name, const ModelOptions& options) {
  const auto recipe = layouts::vgg_recipe(name);
  if (recipe.small_images) return std::make_unique<CifarVgg>(recipe, options);
  return std::make_unique<ImageNetVgg>(recipe, options);
}

}  // namespace capstan::models
