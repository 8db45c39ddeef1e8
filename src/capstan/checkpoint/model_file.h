#pragma once

#include <filesystem>
#include <span>

#include "capstan/base/flat_layout.h"

namespace capstan::checkpoint {

// Throws UserError for a name that ends in neither .safetensors nor .pt or .pth.
void check_model_file(const std::filesystem::path& file);

// Writes a model's flat weights and buffers tensor by tensor as PyTorch has them: as safetensors or, where
// the name ends in .pt or .pth, as torch.save would. Replaces the file as a whole. Throws UserError for
// another ending, and where the file cannot be written.
void write_model(const std::filesystem::path& file, const FlatLayout& layout, std::span<const float> weights,
                 const FlatLayout& buffer_layout, std::span<const float> buffers);

}  // namespace capstan::checkpoint
