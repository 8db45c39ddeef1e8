#pragma once

#include <filesystem>
#include <span>

#include "capstan/base/flat_layout.h"

namespace capstan::cli {

// Writes a model's flat weights and buffers as a safetensors file, tensor by tensor as PyTorch has them.
// Throws UserError where it cannot.
void write_weights(const std::filesystem::path& file, const FlatLayout& layout,
                   std::span<const float> weights, const FlatLayout& buffer_layout,
                   std::span<const float> buffers);

}  // namespace capstan::cli
