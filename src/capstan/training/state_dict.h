#pragma once

#include <filesystem>

#include "capstan/models/model.h"

namespace capstan::training {

// Gives parameters and buffers the values of a safetensors file with PyTorch's names; num_batches_tracked may
// be missing. Throws UserError that names the file and the first tensor that is missing, unknown or of
// another shape, and leaves the model as it was.
void load_state_dict(models::Model& model, const std::filesystem::path& file);

}  // namespace capstan::training
