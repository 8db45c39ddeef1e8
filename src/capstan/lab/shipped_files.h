#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capstan::lab {

// The folders in which experiments or configurations are looked for, those that exist: the one of that name
// in the current folder, then Capstan's own, in its source tree or where it is installed.
std::vector<std::filesystem::path> shipped_folders(const std::string& name);

// The first of these folders that has the file, and the file's path; empty if none has it.
std::filesystem::path find_shipped(const std::string& folder, const std::string& file);

}  // namespace capstan::lab
