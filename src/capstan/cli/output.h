#pragma once

#include <string>

#include "capstan/base/text.h"

namespace capstan::cli {

// Prints a line on standard error. Write errors are ignored.
void say(const std::string& line);

}  // namespace capstan::cli
