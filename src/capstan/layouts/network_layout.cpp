#include "capstan/layouts/network_layout.h"

#include <charconv>

#include <fmt/format.h>

#include "capstan/layouts/families.h"
#include "capstan/user_error.h"

namespace capstan::layouts {
namespace {

constexpr std::string_view kBytes = "bytes:";

void add_lenet(TensorTable& table, std::int64_t classes) {
  table.conv_with_bias("conv1", 1, 20, 5);
  table.conv_with_bias("conv2", 20, 50, 5);
  table.linear("fc1", 800, 500);
  table.linear("fc2", 500, classes);
}

void add_mlp(TensorTable& table, const ImageSize& size, std::int64_t classes) {
  table.linear("fc1", size.channels * size.height * size.width, 128);
  table.linear("fc2", 128, classes);
}

void add_alexnet(TensorTable& table, std::int64_t channels, std::int64_t classes) {
  table.conv_with_bias("features.0", channels, 64, 11);
  table.conv_with_bias("features.3", 64, 192, 5);
  table.conv_with_bias("features.6", 192, 384, 3);
  table.conv_with_bias("features.8", 384, 256, 3);
  table.conv_with_bias("features.10", 256, 256, 3);
  table.linear("classifier.1", 256 * 6 * 6, 4096);
  table.linear("classifier.4", 4096, 4096);
  table.linear("classifier.6", 4096, classes);
}

FlatLayout bytes_layout(const std::string& name) {
  const char* const first = name.data() + kBytes.size();
  const char* const last = name.data() + name.size();
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(first, last, bytes);
  if (error != std::errc{} || end != last || bytes <= 0 || bytes % 4 != 0) {
    throw UserError(
        fmt::format("network '{}': N in bytes:N must be a positive multiple of 4, such as bytes:4096", name));
  }
  return FlatLayout({{"bytes", {bytes / 4}}});
}

}  // namespace

NetworkTensors network_tensors(const NetworkInfo& network, const ImageSize& size, std::int64_t classes) {
  check_input(network, size);
  TensorTable table;
  switch (network.family) {
    case Family::kLeNet:
      add_lenet(table, classes);
      break;
    case Family::kMlp:
      add_mlp(table, size, classes);
      break;
    case Family::kAlexNet:
      add_alexnet(table, size.channels, classes);
      break;
    case Family::kResNet:
      add_resnet(table, network, size.channels, classes);
      break;
    case Family::kVgg:
      add_vgg(table, network, size.channels, classes);
      break;
    case Family::kGoogLeNet:
      add_googlenet(table, network, size.channels, classes);
      break;
    case Family::kInception:
      add_inception(table, network, size.channels, classes);
      break;
    case Family::kDenseNet:
      add_densenet(table, size.channels, classes);
      break;
    case Family::kMobileNet:
      add_mobilenet(table, size.channels, classes);
      break;
  }
  return table.take();
}

FlatLayout network_layout(const std::string& name) {
  if (name.starts_with(kBytes)) return bytes_layout(name);
  const auto& network = find_network(name);
  return FlatLayout(network_tensors(network, network.input, network.classes).parameters);
}

}  // namespace capstan::layouts
