#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/layouts/plans.h"

namespace capstan::layouts {

void add_resnet(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes) {
  const auto plan = resnet_plan(network.name);
  table.conv_norm("conv1", "bn1", channels, plan.width, plan.small_images ? 3 : 7);
  auto in = plan.width;
  for (std::size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    const auto width = plan.width << stage, out = width * plan.expansion();
    for (int block = 0; block < plan.blocks[stage]; ++block) {
      const auto at = fmt::format("layer{}.{}", stage + 1, block);
      if (plan.bottleneck) {
        table.conv_norm(at + ".conv1", at + ".bn1", in, width, 1);
        table.conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
        table.conv_norm(at + ".conv3", at + ".bn3", width, out, 1);
      } else {
        table.conv_norm(at + ".conv1", at + ".bn1", in, width, 3);
        table.conv_norm(at + ".conv2", at + ".bn2", width, width, 3);
      }
      // Where the shape changes, and only there, the shortcut may have a convolution of its own.
      if (in != out && !plan.padded_shortcuts)
        table.conv_norm(at + ".downsample.0", at + ".downsample.1", in, out, 1);
      in = out;
    }
  }
  table.linear("fc", in, classes);
}

}  // namespace capstan::layouts
