#include "capstan/cli/weights_file.h"

#include <vector>

#include "capstan/base/arena_order.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/safetensors.h"

namespace capstan::cli {

void write_weights(const std::filesystem::path& file, const FlatLayout& layout,
                   std::span<const float> weights, const FlatLayout& buffer_layout,
                   std::span<const float> buffers) {
  std::vector<float> ordered(layout.size());
  std::vector<checkpoint::TensorView> views;
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
    views.push_back({tensor.name, tensor.dims, buffers.subspan(range.begin, range.size()),
                     checkpoint::is_counter(tensor.name)});
  }
  checkpoint::write_safetensors(file, views, {{"producer", "capstan"}, {"format", "pt"}});
}

}  // namespace capstan::cli
