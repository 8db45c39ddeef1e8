#pragma once

#include <filesystem>

#include "capstan/torch/named_tensor.h"

namespace capstan::training {

// Loads parameters and buffers from a safetensors file with PyTorch's names. A tensor with aliases is under
// one of its names, or under several with the same bits; num_batches_tracked may be missing. Throws UserError
// that names the file and the first tensor that is missing, unknown, of another shape, or different under two
// of its names, and then leaves them unchanged.
void load_state_dict(const NamedTensors& parameters, const NamedTensors& buffers,
                     const std::filesystem::path& file);

}  // namespace capstan::training
