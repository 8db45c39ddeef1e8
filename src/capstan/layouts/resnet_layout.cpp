#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {

void add_resnet(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes) {
  const auto recipe = resnet_recipe(network.name);
  table.conv_norm("conv1", "bn1", channels, recipe.width, recipe.small_images ? 3 : 7);
  auto in = recipe.width;
  for (std::size_t stage = 0; stage < recipe.blocks.size(); ++stage) {
    const auto width = recipe.width << stage, out = width * recipe.expansion();
    for (int block = 0; block < recipe.blocks[stage]; ++block) {
      const auto at = fmt::format("layer{}.{}", stage + 1, block);
      if (recipe.bottleneck) {
        table.conv_norm(at + ".conv1", at + ".bn1", in, width, 1);
        table.conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
        table.conv_norm(at + ".conv3", at + ".bn3", width, out, 1);
      } else {
        table.conv_norm(at + ".conv1", at + ".bn1", in, width, 3);
        table.conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
      }
      // Only where the shape changes can the shortcut have a convolution.
      if (in != out && !recipe.padded_shortcuts)
        table.conv_norm(at + ".downsample.0", at + ".downsample.1", in, out, 1);
      in = out;
    }
  }
  table.linear("fc", in, classes);
}

}  // namespace capstan::layouts
