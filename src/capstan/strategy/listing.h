#pragma once

#include <string>

namespace capstan::strategy {

// Every value of --strategy with a summary, 80 columns wide.
std::string strategies_text();

}  // namespace capstan::strategy
