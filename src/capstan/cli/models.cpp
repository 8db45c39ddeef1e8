#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/layouts/network_layout.h"

namespace capstan::cli {
namespace {

using layouts::NetworkInfo;

// A network for the images and classes that were asked for.
struct Sized {
  const NetworkInfo& network;
  layouts::ImageSize size;
  layouts::NetworkTensors tensors;

  Sized(const NetworkInfo& info, std::uint32_t side, std::uint32_t classes)
      : network(info), size(info.input) {
    if (side > 0) size.height = size.width = side;
    tensors = layouts::network_tensors(info, size, classes > 0 ? classes : info.classes);
  }

  static std::uint64_t count(const std::vector<TensorShape>& tensors) {
    std::uint64_t elements = 0;
    for (const auto& t : tensors) {
      if (!t.name.ends_with("num_batches_tracked")) elements += t.elements();
    }
    return elements;
  }
  std::uint64_t parameters() const { return count(tensors.parameters); }
  std::uint64_t buffers() const { return count(tensors.buffers); }
  std::uint64_t bytes() const { return 4 * parameters(); }

  Json json() const {
    return {{"name", network.name},
            {"parameters", parameters()},
            {"buffers", buffers()},
            {"bytes", bytes()},
            {"input", layouts::size_text(size)}};
  }
};

// 25557032 → "25,557,032".
std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string row(const std::string& name, const std::string& parameters, const std::string& megabytes,
                const std::string& input, const std::string& what) {
  return fmt::format("{:<18} {:>11} {:>6}  {:<9}  {}\n", name, parameters, megabytes, input, what);
}

void print_table(const std::vector<Sized>& list) {
  fmt::print("{}", row("name", "parameters", "MB", "input", "what"));
  for (const auto& s : list) {
    fmt::print("{}", row(std::string(s.network.name), grouped(s.parameters()),
                         fmt::format("{:.1f}", static_cast<double>(s.bytes()) / 1e6),
                         layouts::size_text(s.size), std::string(s.network.summary)));
  }
}

void print_tensors(const Sized& s) {
  fmt::print("{}: {}\nfor images of {}\n", s.network.name, s.network.summary, layouts::size_text(s.size));
  const auto print = [](const char* what, std::uint64_t elements, const std::vector<TensorShape>& tensors) {
    fmt::print("\n{} {} in {}\n", grouped(elements), what, counted(tensors.size(), "tensor"));
    for (const auto& t : tensors) fmt::print("  {:<61} {:>15}\n", t.name, shape_text(t.dims));
  };
  print("parameters", s.parameters(), s.tensors.parameters);
  if (!s.tensors.buffers.empty()) print("buffers", s.buffers(), s.tensors.buffers);
}

// Those that take images of this size.
std::vector<Sized> all(std::uint32_t side, std::uint32_t classes) {
  std::vector<Sized> list;
  for (const auto& network : layouts::networks()) {
    try {
      list.emplace_back(network, side, classes);
    } catch (const UserError&) {
      continue;
    }
  }
  return list;
}

}  // namespace

int run_models(const Arguments& arguments) {
  std::string name;
  std::uint32_t classes = 0, side = 0;
  bool json = false;
  CommandLine line("models",
                   "The networks that --network takes, with the number of their parameters.\n\n"
                   "  capstan models              all of them\n"
                   "  capstan models resnet50     names and shapes of one network's tensors\n"
                   "  capstan models --json       one object with a list \"models\" of name,\n"
                   "                              parameters, buffers (elements, without\n"
                   "                              num_batches_tracked), bytes (4 a parameter), input\n");
  line.add({.name = "num-classes",
            .value = &classes,
            .limits = config::WholeRange{0, 1u << 20},
            .help = "Classes (0: those of the data a network was made for)"});
  line.add({.name = "image-size",
            .value = &side,
            .limits = config::WholeRange{0, config::kMostSide},
            .help = "Height and width of images (0: those a network was made for); networks that do not take "
                    "them are left out"});
  line.add({.name = "json", .value = &json, .help = "Print one JSON object"});
  line.add({.name = "NAME", .value = &name, .help = "Show this network's tensors", .positional = true});
  if (!line.parse(arguments)) return kSuccess;

  std::vector<Sized> list;
  if (!name.empty()) {
    list.emplace_back(layouts::find_network(name), side, classes);
  } else {
    list = all(side, classes);
  }
  if (json) {
    auto models = Json::array();
    for (const auto& s : list) models.push_back(s.json());
    fmt::print("{}\n", json_line(Json{{"ok", true}, {"models", std::move(models)}}));
  } else if (!name.empty()) {
    print_tensors(list.front());
  } else {
    print_table(list);
  }
  return kSuccess;
}

}  // namespace capstan::cli
