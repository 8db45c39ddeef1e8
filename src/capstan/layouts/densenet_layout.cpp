#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {

void add_densenet(TensorTable& table, std::int64_t channels, std::int64_t classes) {
  constexpr auto kGrowth = kDenseNetGrowth;
  std::int64_t in = 2 * kGrowth;
  table.conv_norm("features.conv0", "features.norm0", channels, in, 7);
  const int blocks = std::size(kDenseNetLayers);
  for (int block = 1; block <= blocks; ++block) {
    for (int layer = 1; layer <= kDenseNetLayers[block - 1]; ++layer) {
      const auto at = fmt::format("features.denseblock{}.denselayer{}", block, layer);
      table.norm(at + ".norm1", in);
      table.conv(at + ".conv1", in, 4 * kGrowth, 1, 1);
      table.norm(at + ".norm2", 4 * kGrowth);
      table.conv(at + ".conv2", 4 * kGrowth, kGrowth, 3, 3);
      in += kGrowth;
    }
    if (block == blocks) break;
    const auto at = fmt::format("features.transition{}", block);
    table.norm(at + ".norm", in);
    table.conv(at + ".conv", in, in / 2, 1, 1);
    in /= 2;
  }
  table.norm("features.norm5", in);
  table.linear("classifier", in, classes);
}

}  // namespace capstan::layouts
