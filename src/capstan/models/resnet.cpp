#include <optional>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool2d.h>
#include <fmt/format.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

constexpr Initializer kInitializer{Initializer::Kind::kOutputs};

// Subsamples by 2 and pads with zero channels on both sides.
at::Tensor padded_shortcut(const at::Tensor& x, std::int64_t out) {
  const auto more = (out - x.size(1)) / 2;
  return at::constant_pad_nd(x.slice(2, 0, x.size(2), 2).slice(3, 0, x.size(3), 2), {0, 0, 0, 0, more, more});
}

struct Block {
  std::vector<ConvNorm> body;
  std::optional<ConvNorm> shortcut;  // where the shape changes
  std::int64_t padded_to = 0;        // channels of a shortcut without parameters

  at::Tensor operator()(const at::Tensor& x) const {
    auto y = x;
    for (std::size_t i = 0; i + 1 < body.size(); ++i) y = rectified(body[i](y));
    y = body.back()(y);
    return rectified(y.add_(shortcut ? (*shortcut)(x) : padded_to > 0 ? padded_shortcut(x, padded_to) : x));
  }
};

class ResNet final : public Network {
 public:
  ResNet(const layouts::ResNetRecipe& recipe, const ModelOptions& options)
      : pools_(!recipe.small_images),
        stem_(conv_norm("conv1", "bn1", options.channels, recipe.width,
                        recipe.small_images ? same(3) : same(7, 2))) {
    auto in = recipe.width;
    for (std::size_t stage = 0; stage < recipe.blocks.size(); ++stage) {
      for (int i = 0; i < recipe.blocks[stage]; ++i) {
        const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        blocks_.push_back(
            block(fmt::format("layer{}.{}", stage + 1, i), recipe, in, recipe.width << stage, stride));
        in = (recipe.width << stage) * recipe.expansion();
      }
    }
    fc_ = linear("fc", in, options.classes, {});
  }

  at::Tensor forward(const at::Tensor& images) override {
    auto x = stem_(images);
    // ReLU after max pooling gives the same result on a quarter of the elements.
    x = rectified(pools_ ? at::max_pool2d(x, 3, 2, 1) : x);
    for (const auto& b : blocks_) x = b(x);
    return fc_(averaged(x));
  }

 private:
  ConvNorm conv_norm(const std::string& conv_name, const std::string& norm_name, std::int64_t in,
                     std::int64_t out, const Kernel& kernel) {
    const auto c = conv(conv_name, in, out, kernel, kInitializer);
    return {c, norm(norm_name, out)};
  }

  Block block(const std::string& at, const layouts::ResNetRecipe& recipe, std::int64_t in, std::int64_t width,
              std::int64_t stride) {
    Block b;
    const auto out = width * recipe.expansion();
    if (recipe.bottleneck) {
      b.body = {conv_norm(at + ".conv1", at + ".bn1", in, width, same(1)),
                conv_norm(at + ".conv2", at + ".bn2", width, width, same(3, stride)),
                conv_norm(at + ".conv3", at + ".bn3", width, out, same(1))};
    } else {
      b.body = {conv_norm(at + ".conv1", at + ".bn1", in, width, same(3, stride)),
                conv_norm(at + ".conv2", at + ".bn2", width, width, same(3))};
    }
    if (in == out) return b;
    if (recipe.padded_shortcuts) {
      b.padded_to = out;
    } else {
      b.shortcut = conv_norm(at + ".downsample.0", at + ".downsample.1", in, out, same(1, stride));
    }
    return b;
  }

  bool pools_;
  ConvNorm stem_;
  std::vector<Block> blocks_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(const std::string& name, const ModelOptions& options) {
  return std::make_unique<ResNet>(layouts::resnet_recipe(name), options);
}

}  // namespace capstan::models
