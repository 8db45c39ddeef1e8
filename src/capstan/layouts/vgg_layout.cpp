#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {

void add_vgg(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes) {
  const auto recipe = vgg_recipe(network.name);
  int index = 0;  // counts the layers without parameters too: ReLU and pooling
  auto in = channels;
  for (int stage = 0; stage < 5; ++stage) {
    const auto out = VggRecipe::channels(stage);
    for (int i = 0; i < recipe.convolutions[stage]; ++i) {
      table.conv_with_bias(fmt::format("features.{}", index++), in, out, 3);
      if (recipe.norm) table.norm(fmt::format("features.{}", index++), out);
      ++index;
      in = out;
    }
    ++index;
  }
  if (recipe.small_images) {
    table.linear("classifier.1", in, 512);
    table.linear("classifier.4", 512, 512);
    table.linear("classifier.6", 512, classes);
  } else {
    table.linear("classifier.0", in * 7 * 7, 4096);
    table.linear("classifier.3", 4096, 4096);
    table.linear("classifier.6", 4096, classes);
  }
}

}  // namespace capstan::layouts
