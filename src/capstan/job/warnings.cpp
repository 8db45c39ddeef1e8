#include "capstan/job/warnings.h"

#include <fstream>
#include <string_view>

namespace capstan::job {
namespace {

constexpr std::string_view kWarning = "warning: ";

}  // namespace

std::string as_warning(const std::string& line) {
  return std::string(kWarning) + line;
}

std::vector<std::string> warnings_in(const std::filesystem::path& log) {
  std::vector<std::string> warnings;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kWarning)) warnings.push_back(line.substr(kWarning.size()));
  return warnings;
}

std::string without_prefix(const std::string& words, const std::string& program) {
  const auto prefix = program + ": ";
  return words.starts_with(prefix) ? words.substr(prefix.size()) : words;
}

}  // namespace capstan::job
