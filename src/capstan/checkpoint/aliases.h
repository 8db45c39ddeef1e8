#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace capstan::checkpoint {

// Other names of tensors, with the tensor's name for each. Checkpoints have a tensor once, under its name; a
// PyTorch state dict has it under every name.
using Aliases = std::map<std::string, std::string>;

// A run keeps its aliases in its folder, as aliases.json. Without any, no file is written.
// Throws UserError if the file cannot be written.
void write_aliases(const std::filesystem::path& run, const Aliases& aliases);
// Empty if the run has no such file, or `run` is empty. Throws UserError if it is damaged.
Aliases read_aliases(const std::filesystem::path& run);

}  // namespace capstan::checkpoint
