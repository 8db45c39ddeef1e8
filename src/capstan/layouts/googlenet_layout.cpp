#include "capstan/layouts/families.h"
#include "capstan/layouts/network_recipes.h"

namespace capstan::layouts {

void add_googlenet(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes) {
  table.unit("conv1", channels, 64, 7);
  table.unit("conv2", 64, 64, 1);
  table.unit("conv3", 64, 192, 3);
  std::int64_t last = 0;
  for (const auto& m : kGoogLeNetModules) {
    const std::string at = m.name;
    table.unit(at + ".branch1", m.in, m.one, 1);
    table.unit(at + ".branch2.0", m.in, m.three_reduced, 1);
    table.unit(at + ".branch2.1", m.three_reduced, m.three, 3);
    table.unit(at + ".branch3.0", m.in, m.five_reduced, 1);
    table.unit(at + ".branch3.1", m.five_reduced, m.five, 3);
    table.unit(at + ".branch4.1", m.in, m.pooled, 1);
    last = m.out();
  }
  if (has_auxiliary(network.name)) {
    const auto head = [&](const std::string& at, std::int64_t in) {
      table.unit(at + ".conv", in, 128, 1);
      table.linear(at + ".fc1", 2048, 1024);
      table.linear(at + ".fc2", 1024, classes);
    };
    head("aux1", 512);
    head("aux2", 528);
  }
  table.linear("fc", last, classes);
}

}  // namespace capstan::layouts
