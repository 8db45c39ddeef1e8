#include <optional>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/max_pool2d.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

// torchvision uses a normal distribution truncated at ±2, which has no effect at this deviation.
constexpr Initializer kInitializer{Initializer::Kind::kNormal, 0.01};
constexpr double kEps = 0.001;
constexpr double kAuxiliaryWeight = 0.3;

at::Tensor pooled(const at::Tensor& x, std::int64_t size) {
  return at::max_pool2d(x, size, 2, 0, 1, /*ceil_mode=*/true);
}

struct Unit : ConvNorm {
  at::Tensor operator()(const at::Tensor& x) const { return rectified(ConvNorm::operator()(x)); }
};

struct Module {
  Unit one, three_reduced, three, five_reduced, five, pool;

  at::Tensor operator()(const at::Tensor& x) const {
    return at::cat({one(x), three(three_reduced(x)), five(five_reduced(x)), pool(at::max_pool2d(x, 3, 1, 1))},
                   1);
  }
};

struct Head {
  Unit conv;
  Linear fc1, fc2;
  Dropout dropout;

  at::Tensor operator()(const at::Tensor& x) const {
    const auto y = conv(at::adaptive_avg_pool2d(x, {4, 4})).flatten(1);
    return fc2(dropout(rectified(fc1(y))));
  }
};

class GoogLeNet final : public Network {
 public:
  GoogLeNet(bool auxiliary, const ModelOptions& options)
      : conv1_(unit("conv1", options.channels, 64, same(7, 2))),
        conv2_(unit("conv2", 64, 64, same(1))),
        conv3_(unit("conv3", 64, 192, same(3))) {
    for (const auto& m : layouts::kGoogLeNetModules) modules_.push_back(module(m));
    if (auxiliary) {
      aux1_ = head("aux1", 512, options);
      aux2_ = head("aux2", 528, options);
    }
    fc_ = linear("fc", 1024, options.classes, kInitializer);
    dropout_ = dropout(options.dropout.value_or(0.2));
  }

  at::Tensor forward(const at::Tensor& images) override {
    return run(images, [](auto&, auto&) {});
  }

  at::Tensor loss(const at::Tensor& images, const at::Tensor& labels) override {
    if (!training() || !aux1_) return Model::loss(images, labels);
    at::Tensor extra;
    const auto logits = run(images, [&](const Head& head, const at::Tensor& x) {
      const auto more = at::cross_entropy_loss(head(x), labels);
      extra = extra.defined() ? extra.add(more) : more;
    });
    return at::cross_entropy_loss(logits, labels).add(extra, kAuxiliaryWeight);
  }

 private:
  Unit unit(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel) {
    const auto c = conv(name + ".conv", in, out, kernel, kInitializer);
    return {{c, norm(name + ".bn", out, kEps)}};
  }

  Module module(const layouts::InceptionModule& m) {
    const std::string at = m.name;
    return {unit(at + ".branch1", m.in, m.one, same(1)),
            unit(at + ".branch2.0", m.in, m.three_reduced, same(1)),
            unit(at + ".branch2.1", m.three_reduced, m.three, same(3)),
            unit(at + ".branch3.0", m.in, m.five_reduced, same(1)),
            // torchvision has 3x3 here, the paper 5x5.
            unit(at + ".branch3.1", m.five_reduced, m.five, same(3)),
            unit(at + ".branch4.1", m.in, m.pooled, same(1))};
  }

  Head head(const std::string& at, std::int64_t in, const ModelOptions& options) {
    return {unit(at + ".conv", in, 128, same(1)), linear(at + ".fc1", 2048, 1024, kInitializer),
            linear(at + ".fc2", 1024, options.classes, kInitializer), dropout(options.dropout.value_or(0.7))};
  }

  // Calls visit(head, its input) for each auxiliary head.
  template <class Visit>
  at::Tensor run(const at::Tensor& images, const Visit& visit) const {
    auto x = pooled(conv1_(images), 3);
    x = pooled(conv3_(conv2_(x)), 3);
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      if (i == 2) x = pooled(x, 3);
      if (i == 7) x = pooled(x, 2);
      x = modules_[i](x);
      if (i == 2 && aux1_) visit(*aux1_, x);
      if (i == 5 && aux2_) visit(*aux2_, x);
    }
    return fc_(dropout_(averaged(x)));
  }

  Unit conv1_, conv2_, conv3_;
  std::vector<Module> modules_;
  std::optional<Head> aux1_, aux2_;
  Linear fc_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_googlenet(const std::string& name, const ModelOptions& options) {
  return std::make_unique<GoogLeNet>(layouts::has_auxiliary(name), options);
}

}  // namespace capstan::models
