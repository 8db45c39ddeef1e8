#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {

void add_mobilenet(TensorTable& table, std::int64_t channels, std::int64_t classes) {
  std::int64_t in = 32;
  int index = 0;
  const auto feature = [&](const std::string& part) { return fmt::format("features.{}.{}", index, part); };
  table.conv_norm(feature("0"), feature("1"), channels, in, 3);
  for (const auto& row : kMobileNetRows) {
    for (int i = 0; i < row.repeats; ++i) {
      ++index;
      const auto hidden = in * row.expansion;
      int part = 0;
      if (row.expansion != 1) {
        table.conv_norm(feature("conv.0.0"), feature("conv.0.1"), in, hidden, 1);
        part = 1;
      }
      // Depthwise convolution: one filter per channel.
      table.conv_norm(feature(fmt::format("conv.{}.0", part)), feature(fmt::format("conv.{}.1", part)), 1,
                      hidden, 3);
      table.conv_norm(feature(fmt::format("conv.{}", part + 1)), feature(fmt::format("conv.{}", part + 2)),
                      hidden, row.channels, 1);
      in = row.channels;
    }
  }
  ++index;
  table.conv_norm(feature("0"), feature("1"), in, 1280, 1);
  table.linear("classifier.1", 1280, classes);
}

}  // namespace capstan::layouts
