#include <string>

#include <fmt/format.h>

#include "capstan/layouts/families.h"

namespace capstan::layouts {
namespace {

class ResNetShapes {
 public:
  // A convolution without bias and the batch norm after it.
  void conv_norm(const std::string& conv, const std::string& norm, std::int64_t in, std::int64_t out,
                 std::int64_t k) {
    shapes_.push_back({conv + ".weight", {out, in, k, k}});
    shapes_.push_back({norm + ".weight", {out}});
    shapes_.push_back({norm + ".bias", {out}});
  }

  void basic_block(const std::string& at, std::int64_t in, std::int64_t width) {
    conv_norm(at + ".conv1", at + ".bn1", in, width, 3);
    conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
  }

  void bottleneck(const std::string& at, std::int64_t in, std::int64_t width) {
    conv_norm(at + ".conv1", at + ".bn1", in, width, 1);
    conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
    conv_norm(at + ".conv3", at + ".bn3", width, 4 * width, 1);
  }

  void linear(const std::string& at, std::int64_t in, std::int64_t out) {
    shapes_.push_back({at + ".weight", {out, in}});
    shapes_.push_back({at + ".bias", {out}});
  }

  std::vector<TensorShape> take() { return std::move(shapes_); }

 private:
  std::vector<TensorShape> shapes_;
};

}  // namespace

std::vector<TensorShape> resnet(std::array<int, 4> blocks, ResNetBlock kind, std::int64_t classes) {
  ResNetShapes shapes;
  shapes.conv_norm("conv1", "bn1", 3, 64, 7);
  std::int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = 64 << stage;
    const std::int64_t out = kind == ResNetBlock::kBasic ? width : 4 * width;
    for (int block = 0; block < blocks[stage]; ++block) {
      const auto at = fmt::format("layer{}.{}", stage + 1, block);
      kind == ResNetBlock::kBasic ? shapes.basic_block(at, in, width) : shapes.bottleneck(at, in, width);
      // Where the shape changes, and only there, the shortcut has a convolution of its own.
      if (in != out) shapes.conv_norm(at + ".downsample.0", at + ".downsample.1", in, out, 1);
      in = out;
    }
  }
  shapes.linear("fc", in, classes);
  return shapes.take();
}

}  // namespace capstan::layouts
