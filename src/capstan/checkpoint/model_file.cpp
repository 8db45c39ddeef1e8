#include "capstan/checkpoint/model_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/arena_order.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/checkpoint/torch_file.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

bool is_torch(const std::filesystem::path& file) {
  return file.extension() == ".pt" || file.extension() == ".pth";
}

void add_aliases(std::vector<TensorView>& views, const Aliases& aliases) {
  const auto find = [&](const std::string& name) {
    return std::ranges::find(views, name, &TensorView::name);
  };
  for (const auto& [alias, name] : aliases) {
    const auto named = find(name);
    if (named == views.end() || find(alias) != views.end()) continue;
    auto view = *named;
    view.name = alias;
    views.push_back(std::move(view));
  }
}

}  // namespace

void check_model_file(const std::filesystem::path& file) {
  if (!is_torch(file) && file.extension() != ".safetensors")
    throw UserError(fmt::format("{}: the name must end in .safetensors or .pt", file.string()));
}

void write_model(const std::filesystem::path& file, const FlatLayout& layout, std::span<const float> weights,
                 const FlatLayout& buffer_layout, std::span<const float> buffers, const Aliases& aliases) {
  check_model_file(file);
  std::vector<float> ordered(layout.size());
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const auto& tensor = layout.tensors()[i];
    const auto range = layout.range(i);
    const auto values = std::span(ordered).subspan(range.begin, range.size());
    to_file_order(tensor.dims, weights.subspan(range.begin, range.size()), values);
    views.push_back({tensor.name, tensor.dims, values, false});
  }
  for (std::size_t i = 0; i < buffer_layout.tensors().size() && !buffers.empty(); ++i) {
    const auto& tensor = buffer_layout.tensors()[i];
    const auto range = buffer_layout.range(i);
    views.push_back(
        {tensor.name, tensor.dims, buffers.subspan(range.begin, range.size()), is_counter(tensor.name)});
  }
  add_aliases(views, aliases);
  if (is_torch(file)) {
    write_torch_file(file, views);
  } else {
    write_safetensors(file, views, {{"producer", "capstan"}, {"format", "pt"}});
  }
}

}  // namespace capstan::checkpoint
