#include "capstan/layouts/network_recipes.h"

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

ResNetRecipe resnet_recipe(std::string_view name) {
  ResNetRecipe recipe;
  recipe.small_images = name.ends_with("-cifar");
  switch (const int layers = layers_in(name)) {
    case 18:
      recipe.blocks = {2, 2, 2, 2};
      return recipe;
    case 34:
      recipe.blocks = {3, 4, 6, 3};
      return recipe;
    case 50:
      recipe.blocks = {3, 4, 6, 3};
      break;
    case 101:
      recipe.blocks = {3, 4, 23, 3};
      break;
    case 152:
      recipe.blocks = {3, 8, 36, 3};
      break;
    default:  // three stages of n blocks of two: 6n + 2 layers
      CAPSTAN_CHECK(layers % 6 == 2, "the ResNet has 6n + 2 layers");
      recipe.blocks.assign(3, (layers - 2) / 6);
      recipe.small_images = recipe.padded_shortcuts = true;
      recipe.width = 16;
      return recipe;
  }
  recipe.bottleneck = true;
  return recipe;
}

VggRecipe vgg_recipe(std::string_view name) {
  VggRecipe recipe{};
  recipe.norm = name.find("-bn") != std::string_view::npos;
  recipe.small_images = name.ends_with("-cifar");
  switch (layers_in(name)) {
    case 11:
      recipe.convolutions = {1, 1, 2, 2, 2};
      break;
    case 13:
      recipe.convolutions = {2, 2, 2, 2, 2};
      break;
    case 16:
      recipe.convolutions = {2, 2, 3, 3, 3};
      break;
    case 19:
      recipe.convolutions = {2, 2, 4, 4, 4};
      break;
    default:
      CAPSTAN_CHECK(false, "the VGG has 11, 13, 16 or 19 layers");
  }
  return recipe;
}

bool has_auxiliary(std::string_view name) {
  return !name.ends_with("-noaux");
}

}  // namespace capstan::layouts
