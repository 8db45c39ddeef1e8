#include "capstan/cli/weights_file.h"

#include "capstan/checkpoint/safetensors.h"
#include "capstan/models/arena.h"

namespace capstan::cli {

void write_weights(const std::filesystem::path& file, const FlatLayout& layout,
                   std::span<const float> weights) {
  const auto tensors = models::export_tensors(layout, weights);
  std::vector<checkpoint::TensorView> views;
  for (const auto& t : tensors) views.push_back({t.name, t.dims, t.values});
  checkpoint::write_safetensors(file, views, {{"producer", "capstan"}});
}

}  // namespace capstan::cli
