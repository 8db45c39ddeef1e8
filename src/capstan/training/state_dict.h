#pragma once

#include <filesystem>

#include "capstan/models/model.h"

namespace capstan::training {

// Loads parameters and buffers from a safetensors file with PyTorch's names; num_batches_tracked may be
// missing. Throws UserError that names the file and the first tensor that is missing, unknown or of another
// shape, and then leaves the model unchanged.
void load_state_dict(models::Model& model, const std::filesystem::path& file);

}  // namespace capstan::training
