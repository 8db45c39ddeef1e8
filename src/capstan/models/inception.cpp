#include <optional>

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/max_pool2d.h>

#include "capstan/layouts/network_recipes.h"
#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

// torchvision uses a normal distribution truncated at ±2, which has no effect at this deviation.
constexpr Initializer kInitializer{Initializer::Kind::kNormal, 0.1};
constexpr Initializer kAuxiliaryInitializer{Initializer::Kind::kNormal, 0.001};
constexpr double kEps = 0.001;
constexpr double kAuxiliaryWeight = 0.4;

struct Unit : ConvNorm {
  at::Tensor operator()(const at::Tensor& x) const { return rectified(ConvNorm::operator()(x)); }
};

// Units in sequence.
struct Chain {
  std::vector<Unit> units;

  at::Tensor operator()(at::Tensor x) const {
    for (const auto& unit : units) x = unit(x);
    return x;
  }
};

// Parallel branches and a pooling branch: average pooling with a projection, or max pooling with stride 2.
struct Module {
  std::vector<Chain> branches;
  std::vector<std::vector<Unit>> tips;  // the two ends of a branch that splits; empty for other branches
  std::optional<Unit> projection;

  at::Tensor operator()(const at::Tensor& x) const {
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const auto y = branches[i](x);
      if (i >= tips.size() || tips[i].empty()) parts.push_back(y);
      if (i < tips.size()) {
        for (const auto& tip : tips[i]) parts.push_back(tip(y));
      }
    }
    parts.push_back(projection ? (*projection)(at::avg_pool2d(x, 3, 1, 1)) : at::max_pool2d(x, 3, 2));
    return at::cat(parts, 1);
  }
};

struct Head {
  Unit conv0, conv1;
  Linear fc;

  at::Tensor operator()(const at::Tensor& x) const {
    return fc(averaged(conv1(conv0(at::avg_pool2d(x, 5, 3)))));
  }
};

class Inception final : public Network {
 public:
  Inception(bool auxiliary, const ModelOptions& options)
      : stem_{unit("Conv2d_1a_3x3", options.channels, 32, valid(3, 2)),
              unit("Conv2d_2a_3x3", 32, 32, valid(3)), unit("Conv2d_2b_3x3", 32, 64, same(3)),
              unit("Conv2d_3b_1x1", 64, 80, same(1)), unit("Conv2d_4a_3x3", 80, 192, valid(3))},
        modules_{module_a("Mixed_5b", 192, 32),  module_a("Mixed_5c", 256, 64),
                 module_a("Mixed_5d", 288, 64),  module_b("Mixed_6a", 288),
                 module_c("Mixed_6b", 768, 128), module_c("Mixed_6c", 768, 160),
                 module_c("Mixed_6d", 768, 160), module_c("Mixed_6e", 768, 192)} {
    if (auxiliary) {
      head_ = {unit("AuxLogits.conv0", 768, 128, same(1)), unit("AuxLogits.conv1", 128, 768, valid(5)),
               linear("AuxLogits.fc", 768, options.classes, kAuxiliaryInitializer)};
    }
    last_ = {module_d("Mixed_7a", 768), module_e("Mixed_7b", 1280), module_e("Mixed_7c", 2048)};
    fc_ = linear("fc", 2048, options.classes, kInitializer);
    dropout_ = dropout(options.dropout.value_or(0.5));
  }

  at::Tensor forward(const at::Tensor& images) override { return finish(begin(images)); }

  at::Tensor loss(const at::Tensor& images, const at::Tensor& labels) override {
    if (!training() || !head_) return Model::loss(images, labels);
    const auto x = begin(images);
    const auto extra = at::cross_entropy_loss((*head_)(x), labels);
    return at::cross_entropy_loss(finish(x), labels).add(extra, kAuxiliaryWeight);
  }

 private:
  Unit unit(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel) {
    const auto c = conv(name + ".conv", in, out, kernel, kInitializer);
    return {{c, norm(name + ".bn", out, kEps)}};
  }

  Module module_a(const std::string& at, std::int64_t in, std::int64_t pooled) {
    Module m;
    m.branches.push_back({{unit(at + ".branch1x1", in, 64, same(1))}});
    m.branches.push_back(
        {{unit(at + ".branch5x5_1", in, 48, same(1)), unit(at + ".branch5x5_2", 48, 64, same(5))}});
    m.branches.push_back(
        {{unit(at + ".branch3x3dbl_1", in, 64, same(1)), unit(at + ".branch3x3dbl_2", 64, 96, same(3)),
          unit(at + ".branch3x3dbl_3", 96, 96, same(3))}});
    m.projection = unit(at + ".branch_pool", in, pooled, same(1));
    return m;
  }

  Module module_b(const std::string& at, std::int64_t in) {
    Module m;
    m.branches.push_back({{unit(at + ".branch3x3", in, 384, valid(3, 2))}});
    m.branches.push_back(
        {{unit(at + ".branch3x3dbl_1", in, 64, same(1)), unit(at + ".branch3x3dbl_2", 64, 96, same(3)),
          unit(at + ".branch3x3dbl_3", 96, 96, valid(3, 2))}});
    return m;
  }

  Module module_c(const std::string& at, std::int64_t in, std::int64_t width) {
    Module m;
    m.branches.push_back({{unit(at + ".branch1x1", in, 192, same(1))}});
    m.branches.push_back({{unit(at + ".branch7x7_1", in, width, same(1)),
                           unit(at + ".branch7x7_2", width, width, asymmetric(1, 7)),
                           unit(at + ".branch7x7_3", width, 192, asymmetric(7, 1))}});
    m.branches.push_back({{unit(at + ".branch7x7dbl_1", in, width, same(1)),
                           unit(at + ".branch7x7dbl_2", width, width, asymmetric(7, 1)),
                           unit(at + ".branch7x7dbl_3", width, width, asymmetric(1, 7)),
                           unit(at + ".branch7x7dbl_4", width, width, asymmetric(7, 1)),
                           unit(at + ".branch7x7dbl_5", width, 192, asymmetric(1, 7))}});
    m.projection = unit(at + ".branch_pool", in, 192, same(1));
    return m;
  }

  Module module_d(const std::string& at, std::int64_t in) {
    Module m;
    m.branches.push_back(
        {{unit(at + ".branch3x3_1", in, 192, same(1)), unit(at + ".branch3x3_2", 192, 320, valid(3, 2))}});
    m.branches.push_back({{unit(at + ".branch7x7x3_1", in, 192, same(1)),
                           unit(at + ".branch7x7x3_2", 192, 192, asymmetric(1, 7)),
                           unit(at + ".branch7x7x3_3", 192, 192, asymmetric(7, 1)),
                           unit(at + ".branch7x7x3_4", 192, 192, valid(3, 2))}});
    return m;
  }

  Module module_e(const std::string& at, std::int64_t in) {
    Module m;
    m.tips.resize(3);
    m.branches.push_back({{unit(at + ".branch1x1", in, 320, same(1))}});
    m.branches.push_back({{unit(at + ".branch3x3_1", in, 384, same(1))}});
    m.tips[1] = {unit(at + ".branch3x3_2a", 384, 384, asymmetric(1, 3)),
                 unit(at + ".branch3x3_2b", 384, 384, asymmetric(3, 1))};
    m.branches.push_back(
        {{unit(at + ".branch3x3dbl_1", in, 448, same(1)), unit(at + ".branch3x3dbl_2", 448, 384, same(3))}});
    m.tips[2] = {unit(at + ".branch3x3dbl_3a", 384, 384, asymmetric(1, 3)),
                 unit(at + ".branch3x3dbl_3b", 384, 384, asymmetric(3, 1))};
    m.projection = unit(at + ".branch_pool", in, 192, same(1));
    return m;
  }

  // The layers up to the auxiliary head, and those after it.
  at::Tensor begin(const at::Tensor& images) const {
    auto x = stem_[2](stem_[1](stem_[0](images)));
    x = stem_[4](stem_[3](at::max_pool2d(x, 3, 2)));
    x = at::max_pool2d(x, 3, 2);
    for (const auto& m : modules_) x = m(x);
    return x;
  }
  at::Tensor finish(at::Tensor x) const {
    for (const auto& m : last_) x = m(x);
    return fc_(dropout_(averaged(x)));
  }

  std::vector<Unit> stem_;
  std::vector<Module> modules_;
  std::optional<Head> head_;
  std::vector<Module> last_;
  Linear fc_;
  Dropout dropout_;
};

}  // namespace

std::unique_ptr<Model> make_inception(const std::string& name, const ModelOptions& options) {
  return std::make_unique<Inception>(layouts::has_auxiliary(name), options);
}

}  // namespace capstan::models
