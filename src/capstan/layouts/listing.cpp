#include "capstan/layouts/listing.h"

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::layouts {
namespace {

std::uint64_t count(const std::vector<TensorShape>& tensors) {
  std::uint64_t elements = 0;
  for (const auto& t : tensors) {
    if (!t.name.ends_with("num_batches_tracked")) elements += t.elements();
  }
  return elements;
}

// 25557032 → "25,557,032".
std::string grouped(std::uint64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string row(std::string_view name, const std::string& parameters, const std::string& megabytes,
                const std::string& input, std::string_view what) {
  return fmt::format("{:<18} {:>11} {:>6}  {:<9}  {}\n", name, parameters, megabytes, input, what);
}

std::string list(const char* what, std::uint64_t elements, const std::vector<TensorShape>& tensors) {
  auto text = fmt::format("\n{} {} in {}\n", grouped(elements), what, counted(tensors.size(), "tensor"));
  for (const auto& t : tensors) text += fmt::format("  {:<61} {:>15}\n", t.name, shape_text(t.dims));
  return text;
}

}  // namespace

SizedNetwork::SizedNetwork(const NetworkInfo& network, std::uint32_t side, std::uint32_t classes)
    : info_(&network), size_(network.input) {
  if (side > 0) size_.height = size_.width = side;
  tensors_ = network_tensors(network, size_, classes > 0 ? classes : network.classes);
}

std::uint64_t SizedNetwork::parameters() const {
  return count(tensors_.parameters);
}

std::uint64_t SizedNetwork::buffers() const {
  return count(tensors_.buffers);
}

std::string SizedNetwork::tensors_text() const {
  auto text = fmt::format("{}: {}\nfor images of {}\n", info_->name, info_->summary, size_text(size_)) +
              list("parameters", parameters(), tensors_.parameters);
  if (!tensors_.buffers.empty()) text += list("buffers", buffers(), tensors_.buffers);
  return text;
}

std::vector<SizedNetwork> sized_networks(std::uint32_t side, std::uint32_t classes) {
  std::vector<SizedNetwork> all;
  for (const auto& network : networks()) {
    try {
      all.emplace_back(network, side, classes);
    } catch (const UserError&) {
      continue;
    }
  }
  return all;
}

std::string networks_text(std::span<const SizedNetwork> networks) {
  auto text = row("name", "parameters", "MB", "input", "what");
  for (const auto& n : networks)
    text += row(n.info().name, grouped(n.parameters()),
                fmt::format("{:.1f}", static_cast<double>(n.bytes()) / 1e6), size_text(n.size()),
                n.info().summary);
  return text;
}

Json networks_json(std::span<const SizedNetwork> networks) {
  auto models = Json::array();
  for (const auto& n : networks)
    models.push_back({{"name", n.info().name},
                      {"parameters", n.parameters()},
                      {"buffers", n.buffers()},
                      {"bytes", n.bytes()},
                      {"input", size_text(n.size())}});
  return {{"ok", true}, {"models", std::move(models)}};
}

}  // namespace capstan::layouts
