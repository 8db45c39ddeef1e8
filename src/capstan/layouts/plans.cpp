#include "capstan/layouts/plans.h"

#include <charconv>

#include "capstan/base/check.h"

namespace capstan::layouts {
namespace {

// The number of layers in "resnet18-cifar" and "vgg16-bn".
int layers_in(std::string_view name) {
  const auto digits = name.substr(name.find_first_of("0123456789"));
  int layers = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), layers);
  return layers;
}

}  // namespace

ResNetPlan resnet_plan(std::string_view name) {
  ResNetPlan plan;
  plan.small_images = name.ends_with("-cifar");
  switch (const int layers = layers_in(name)) {
    case 18:
      plan.blocks = {2, 2, 2, 2};
      return plan;
    case 34:
      plan.blocks = {3, 4, 6, 3};
      return plan;
    case 50:
      plan.blocks = {3, 4, 6, 3};
      break;
    case 101:
      plan.blocks = {3, 4, 23, 3};
      break;
    case 152:
      plan.blocks = {3, 8, 36, 3};
      break;
    default:  // three stages of n blocks of two: 6n + 2 layers
      CAPSTAN_CHECK(layers % 6 == 2, "a known ResNet");
      plan.blocks.assign(3, (layers - 2) / 6);
      plan.small_images = plan.padded_shortcuts = true;
      plan.width = 16;
      return plan;
  }
  plan.bottleneck = true;
  return plan;
}

VggPlan vgg_plan(std::string_view name) {
  VggPlan plan{};
  plan.norm = name.find("-bn") != std::string_view::npos;
  plan.small_images = name.ends_with("-cifar");
  switch (layers_in(name)) {
    case 11:
      plan.convolutions = {1, 1, 2, 2, 2};
      break;
    case 13:
      plan.convolutions = {2, 2, 2, 2, 2};
      break;
    case 16:
      plan.convolutions = {2, 2, 3, 3, 3};
      break;
    case 19:
      plan.convolutions = {2, 2, 4, 4, 4};
      break;
    default:
      CAPSTAN_CHECK(false, "a known VGG");
  }
  return plan;
}

bool has_auxiliary(std::string_view name) {
  return !name.ends_with("-noaux");
}

}  // namespace capstan::layouts
