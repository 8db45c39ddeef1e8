#include <ATen/ops/hardtanh.h>
#include <fmt/format.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

constexpr Initializer kInitializer{Initializer::Kind::kOutputs};
constexpr Initializer kLinearInitializer{Initializer::Kind::kNormal, 0.01, true};

struct Unit : ConvNorm {
  // ReLU6.
  at::Tensor operator()(const at::Tensor& x) const {
    auto y = ConvNorm::operator()(x);
    return at::hardtanh_(y, 0, 6);
  }
};

struct Block {
  std::vector<Unit> units;  // expansion, if any; then the depthwise convolution
  ConvNorm narrow;
  bool residual;

  at::Tensor operator()(const at::Tensor& x) const {
    auto y = x;
    for (const auto& unit : units) y = unit(y);
    y = narrow(y);
    return residual ? y.add_(x) : y;
  }
};

class MobileNet final : public Network {
 public:
  explicit MobileNet(const ModelOptions& options)
      : stem_{conv_norm("features.0.0", "features.0.1", options.channels, 32, same(3, 2))} {
    std::int64_t in = 32;
    int index = 0;
    for (const auto& row : layouts::kMobileNetRows) {
      for (int i = 0; i < row.repeats; ++i) {
        blocks_.push_back(block(fmt::format("features.{}.conv", ++index), in, row, i == 0 ? row.stride : 1));
        in = row.channels;
      }
    }
    const auto at = fmt::format("features.{}", index + 1);
    last_ = {conv_norm(at + ".0", at + ".1", in, 1280, same(1))};
    classifier_ = linear("classifier.1", 1280, options.classes, kLinearInitializer);
    dropout_ = dropout(options.dropout.value_or(0.2));
  }

  at::Tensor forward(const at::Tensor& images) override {
    auto x = stem_(images);
    for (const auto& b : blocks_) x = b(x);
    return classifier_(dropout_(averaged(last_(x))));
  }

 private:
  ConvNorm conv_norm(const std::string& conv_name, const std::string& norm_name, std::int64_t in,
                     std::int64_t out, const Kernel& kernel) {
    const auto c = conv(conv_name, in, out, kernel, kInitializer);
    return {c, norm(norm_name, out)};
  }

  Block block(const std::string& at, std::int64_t in, const layouts::MobileNetRow& row, std::int64_t stride) {
    Block b;
    const auto hidden = in * row.expansion;
    int part = 0;
    if (row.expansion != 1)
      b.units.push_back({conv_norm(at + ".0.0", at + ".0.1", in, hidden, same(1))}), part = 1;
    auto each_channel = same(3, stride);
    each_channel.groups = hidden;
    b.units.push_back({conv_norm(fmt::format("{}.{}.0", at, part), fmt::format("{}.{}.1", at, part), hidden,
                                 hidden, each_channel)});
    b.narrow = conv_norm(fmt::format("{}.{}", at, part + 1), fmt::format("{}.{}", at, part + 2), hidden,
                         row.channels, same(1));
    b.residual = stride == 1 && in == row.channels;
    return b;
  }

  Unit stem_;
  std::vector<Block> blocks_;
  Unit last_;
  Linear classifier_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_mobilenet(const std::string&, const ModelOptions& options) {
  return std::make_unique<MobileNet>(options);
}

}  // namespace capstan::models
