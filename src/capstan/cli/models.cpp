#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/layouts/listing.h"

namespace capstan::cli {

int run_models(const Arguments& arguments) {
  std::string name;
  std::uint32_t classes = 0, side = 0;
  bool json = false;
  CommandLine line("models",
                   "Lists the networks for --network, with their parameter counts.\n\n"
                   "  capstan models              all networks\n"
                   "  capstan models resnet50     names and shapes of one network's tensors\n"
                   "  capstan models --json       one object with a list \"models\" of name,\n"
                   "                              parameters, buffers (elements, without\n"
                   "                              num_batches_tracked), bytes (4 per parameter),\n"
                   "                              input\n");
  line.flag("num-classes", &classes, "Number of classes (0: the network's default)",
            config::WholeRange{0, 1u << 20});
  line.flag("image-size", &side,
            "Height and width of images (0: the network's default); networks that do not support this "
            "size are left out",
            config::WholeRange{0, config::kMostSide});
  line.flag("json", &json, "Print one JSON object");
  line.positional("NAME", &name, "Show this network's tensors");
  if (!line.parse(arguments)) return kSuccess;

  const auto list = name.empty()
                        ? layouts::sized_networks(side, classes)
                        : std::vector{layouts::SizedNetwork(layouts::find_network(name), side, classes)};
  if (json) {
    fmt::print("{}\n", json_line(layouts::networks_json(list)));
  } else {
    fmt::print("{}", name.empty() ? layouts::networks_text(list) : list.front().tensors_text());
  }
  return kSuccess;
}

}  // namespace capstan::cli
