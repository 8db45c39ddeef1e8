#include "capstan/layouts/network_layout.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/layouts/families.h"

namespace capstan::layouts {
namespace {

constexpr std::string_view kNames[] = {"lenet", "resnet18", "resnet50", "vgg16"};
constexpr std::string_view kBytes = "bytes:";

std::vector<TensorShape> lenet() {
  return {{"conv1.weight", {20, 1, 5, 5}},  {"conv1.bias", {20}},
          {"conv2.weight", {50, 20, 5, 5}}, {"conv2.bias", {50}},
          {"fc1.weight", {500, 800}},       {"fc1.bias", {500}},
          {"fc2.weight", {10, 500}},        {"fc2.bias", {10}}};
}

FlatLayout bytes_layout(const std::string& name) {
  const char* const first = name.data() + kBytes.size();
  const char* const last = name.data() + name.size();
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(first, last, bytes);
  if (error != std::errc{} || end != last || bytes <= 0 || bytes % 4 != 0) {
    throw UserError(
        fmt::format("network '{}': N in bytes:N is a positive multiple of 4, such as bytes:4096", name));
  }
  return FlatLayout({{"bytes", {bytes / 4}}});
}

}  // namespace

std::span<const std::string_view> network_names() {
  return kNames;
}

FlatLayout network_layout(const std::string& name) {
  if (name == "lenet") return FlatLayout(lenet());
  if (name == "resnet18") return FlatLayout(resnet({2, 2, 2, 2}, ResNetBlock::kBasic, 1000));
  if (name == "resnet50") return FlatLayout(resnet({3, 4, 6, 3}, ResNetBlock::kBottleneck, 1000));
  if (name == "vgg16") return FlatLayout(vgg({2, 2, 3, 3, 3}, 1000));
  if (name.starts_with(kBytes)) return bytes_layout(name);
  const auto near = nearest(name, kNames);
  throw UserError(fmt::format("unknown network '{}'{}; known are {}, bytes:N", name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(kNames, ", ")));
}

}  // namespace capstan::layouts
