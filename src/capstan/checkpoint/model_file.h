#pragma once

#include <filesystem>
#include <span>

#include "capstan/checkpoint/aliases.h"
#include "capstan/layout.h"

namespace capstan::checkpoint {

// Throws UserError for a name that ends in neither .safetensors nor .pt or .pth.
void check_model_file(const std::filesystem::path& file);

// Writes a model's flat weights and buffers as PyTorch's tensors, and those with aliases once more under
// each: as safetensors or, if the name ends in .pt or .pth, as torch.save does. Aliases of tensors that are
// not written, and those that are names of other tensors, are ignored. Replaces the file atomically. Throws
// UserError for other endings, and if the file cannot be written.
void write_model(const std::filesystem::path& file, const FlatLayout& layout, std::span<const float> weights,
                 const FlatLayout& buffer_layout, std::span<const float> buffers, const Aliases& aliases);

}  // namespace capstan::checkpoint
