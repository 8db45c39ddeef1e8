#include "capstan/cli/output.h"

#include <cstdio>

namespace capstan::cli {

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

}  // namespace capstan::cli
