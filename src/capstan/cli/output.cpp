#include "capstan/cli/output.h"

#include <cstdio>

namespace capstan::cli {

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

std::string counted(std::uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace capstan::cli
