#include "capstan/job/warnings.h"

#include <fstream>
#include <string_view>

namespace capstan::job {
namespace {

constexpr std::string_view kWarning = "warning: ";
constexpr std::string_view kName = "capstan: ";

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

std::string without_prefix(const std::string& words) {
  return words.starts_with(kName) ? words.substr(kName.size()) : words;
}

}  // namespace capstan::job
