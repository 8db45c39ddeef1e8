#include "capstan/checkpoint/model_file.h"

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

}  // namespace

void check_model_file(const std::filesystem::path& file) {
  if (!is_torch(file) && file.extension() != ".safetensors")
    throw UserError(fmt::format("{}: the name must end in .safetensors or .pt", file.string()));
}

void write_model(const std::filesystem::path& file, const FlatLayout& layout, std::span<const float> weights,
                 const FlatLayout& buffer_layout, std::span<const float> buffers) {
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
  if (is_torch(file)) {
    write_torch_file(file, views);
  } else {
    write_safetensors(file, views, {{"producer", "capstan"}, {"format", "pt"}});
  }
}

}  // namespace capstan::checkpoint
