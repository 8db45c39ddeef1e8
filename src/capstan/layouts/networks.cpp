#include "capstan/layouts/networks.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::layouts {
namespace {

using enum Family;

constexpr ImageSize kDigits{1, 28, 28}, kCifar{3, 32, 32}, kImageNet{3, 224, 224}, kLarge{3, 299, 299};

// To add a network, add a line, its tensors in this folder, and its layers in models.
constexpr NetworkInfo kTable[] = {
    {"lenet", kLeNet, kDigits, 10, "LeNet as in Caffe", 28, 0},
    {"mlp", kMlp, kDigits, 10, "perceptron, 128 hidden units", 1, 0},
    {"alexnet", kAlexNet, kImageNet, 1000, "AlexNet", 63, 0},
    {"resnet18", kResNet, kImageNet, 1000, "ResNet, basic blocks", 1, 33},
    {"resnet34", kResNet, kImageNet, 1000, "ResNet, basic blocks", 1, 33},
    {"resnet50", kResNet, kImageNet, 1000, "ResNet, bottlenecks", 1, 33},
    {"resnet101", kResNet, kImageNet, 1000, "ResNet, bottlenecks", 1, 33},
    {"resnet152", kResNet, kImageNet, 1000, "ResNet, bottlenecks", 1, 33},
    {"resnet18-cifar", kResNet, kCifar, 10, "ResNet, 3x3 stem, no pool", 1, 9},
    {"resnet34-cifar", kResNet, kCifar, 10, "ResNet, 3x3 stem, no pool", 1, 9},
    {"resnet50-cifar", kResNet, kCifar, 10, "ResNet, 3x3 stem, no pool", 1, 9},
    {"resnet101-cifar", kResNet, kCifar, 10, "ResNet, 3x3 stem, no pool", 1, 9},
    {"resnet152-cifar", kResNet, kCifar, 10, "ResNet, 3x3 stem, no pool", 1, 9},
    {"resnet20", kResNet, kCifar, 10, "ResNet, 16-32-64 channels", 1, 5},
    {"resnet32", kResNet, kCifar, 10, "ResNet, 16-32-64 channels", 1, 5},
    {"resnet44", kResNet, kCifar, 10, "ResNet, 16-32-64 channels", 1, 5},
    {"resnet56", kResNet, kCifar, 10, "ResNet, 16-32-64 channels", 1, 5},
    {"resnet110", kResNet, kCifar, 10, "ResNet, 16-32-64 channels", 1, 5},
    {"vgg11", kVgg, kImageNet, 1000, "VGG A", 32, 0},
    {"vgg13", kVgg, kImageNet, 1000, "VGG B", 32, 0},
    {"vgg16", kVgg, kImageNet, 1000, "VGG D", 32, 0},
    {"vgg19", kVgg, kImageNet, 1000, "VGG E", 32, 0},
    {"vgg11-bn", kVgg, kImageNet, 1000, "VGG A, batch norm", 32, 0},
    {"vgg13-bn", kVgg, kImageNet, 1000, "VGG B, batch norm", 32, 0},
    {"vgg16-bn", kVgg, kImageNet, 1000, "VGG D, batch norm", 32, 0},
    {"vgg19-bn", kVgg, kImageNet, 1000, "VGG E, batch norm", 32, 0},
    {"vgg11-cifar", kVgg, kCifar, 10, "VGG A, head of 512s", 32, 0},
    {"vgg13-cifar", kVgg, kCifar, 10, "VGG B, head of 512s", 32, 0},
    {"vgg16-cifar", kVgg, kCifar, 10, "VGG D, head of 512s", 32, 0},
    {"vgg19-cifar", kVgg, kCifar, 10, "VGG E, head of 512s", 32, 0},
    {"vgg11-bn-cifar", kVgg, kCifar, 10, "VGG A, BN, head of 512s", 32, 0},
    {"vgg13-bn-cifar", kVgg, kCifar, 10, "VGG B, BN, head of 512s", 32, 0},
    {"vgg16-bn-cifar", kVgg, kCifar, 10, "VGG D, BN, head of 512s", 32, 0},
    {"vgg19-bn-cifar", kVgg, kCifar, 10, "VGG E, BN, head of 512s", 32, 0},
    {"googlenet", kGoogLeNet, kImageNet, 1000, "Inception v1, 2 aux. heads", 15, 47},
    {"googlenet-noaux", kGoogLeNet, kImageNet, 1000, "Inception v1", 15, 47},
    {"inception-v3", kInception, kLarge, 1000, "Inception v3, auxiliary head", 299, 347},
    {"inception-v3-noaux", kInception, kLarge, 1000, "Inception v3", 75, 107},
    {"densenet121", kDenseNet, kImageNet, 1000, "DenseNet, growth 32", 29, 61},
    {"mobilenet-v2", kMobileNet, kImageNet, 1000, "MobileNet v2", 1, 33},
};

}  // namespace

std::span<const NetworkInfo> networks() {
  return kTable;
}

const NetworkInfo& find_network(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  const auto found = std::ranges::find(kTable, dashed, &NetworkInfo::name);
  if (found != std::end(kTable)) return *found;
  std::vector<std::string_view> names;
  for (const auto& n : kTable) names.push_back(n.name);
  const auto near = nearest(dashed, names);
  throw UserError(fmt::format("unknown network '{}'{}; capstan models lists all", name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

void check_input(const NetworkInfo& network, const ImageSize& size) {
  if (network.family == kLeNet && size != network.input) {
    throw UserError(fmt::format("{} takes images of {}; these are {} (mlp takes any)", network.name,
                                size_text(network.input), size_text(size)));
  }
  if (std::min(size.height, size.width) < network.least_side) {
    throw UserError(fmt::format("{} takes images of at least {}x{}; these are {}", network.name,
                                network.least_side, network.least_side, size_text(size)));
  }
}

void check_batch(const NetworkInfo& network, const ImageSize& size, std::uint64_t batch) {
  if (batch > 1 || std::max(size.height, size.width) >= network.alone_side) return;
  throw UserError(
      fmt::format("{} cannot be trained on single images of {}: its batch norm needs more than one value per "
                  "channel; --batch-size must be at least 2",
                  network.name, size_text(size)));
}

std::string size_text(const ImageSize& size) {
  return fmt::format("{}x{}x{}", size.channels, size.height, size.width);
}

}  // namespace capstan::layouts
