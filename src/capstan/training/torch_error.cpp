#include "capstan/training/torch_error.h"

#include <sstream>

#include <c10/util/Exception.h>

namespace capstan::training {

std::string full_text(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch ? of_torch->what_without_backtrace() : error.what();
}

// TorchScript's interpreter puts the trace of the module's code first, and the reason last: "RuntimeError:
// …".
std::string first_line(const std::exception& error) {
  const auto text = full_text(error);
  if (const auto at = text.rfind("RuntimeError: "); at != std::string::npos) {
    const auto begin = at + std::string_view("RuntimeError: ").size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t") != std::string::npos) return line;
  return "unknown error";
}

}  // namespace capstan::training
