#pragma once

#include <filesystem>
#include <span>

#include "capstan/checkpoint/safetensors.h"

namespace capstan::checkpoint {

// Writes a state dict as torch.save does: a zip archive with a pickle of an OrderedDict from names to
// tensors, in the order given, and each tensor's values as an entry of its own. torch.load of PyTorch 1.13 or
// newer reads it, also with weights_only=True. Nothing here reads pickle: loading one can run any code.
//
// Replaces `path` as a whole, as write_safetensors does. Bytes of names that are no UTF-8 are replaced.
void write_torch_file(const std::filesystem::path& path, std::span<const TensorView> tensors);

}  // namespace capstan::checkpoint
