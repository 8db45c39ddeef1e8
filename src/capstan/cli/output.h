#pragma once

#include <string>

#include "capstan/base/text.h"

namespace capstan::cli {

// A line for people, on standard error. Where that cannot be written, nobody reads it and nothing happens.
void say(const std::string& line);

}  // namespace capstan::cli
