#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capstan::job {

// Marks a line as a warning, for warnings_in().
std::string as_warning(const std::string& line);
// The warnings in another process's log.
std::vector<std::string> warnings_in(const std::filesystem::path& log);

// A line of a program's log without the prefix "PROGRAM: ".
std::string without_prefix(const std::string& words, const std::string& program);

}  // namespace capstan::job
