#pragma once

#include <filesystem>
#include <span>

#include "capstan/checkpoint/safetensors.h"

namespace capstan::checkpoint {

// Writes a state dict as torch.save does: a zip archive with a pickle of an OrderedDict from names to
// tensors, in the given order, and one entry per tensor with its values. torch.load of PyTorch 1.13 or newer
// reads it, also with weights_only=True. Capstan does not read pickle: loading one can run arbitrary code.
//
// Replaces `path` atomically, as write_safetensors does. Bytes of names that are not UTF-8 are replaced.
void write_torch_file(const std::filesystem::path& path, std::span<const TensorView> tensors);

}  // namespace capstan::checkpoint
