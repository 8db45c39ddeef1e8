#pragma once

#include <exception>
#include <string>

namespace capstan::training {

// The first line of an exception that says something, without libtorch's stack traces.
std::string first_line(const std::exception& error);
// All of it, without C++ stack traces.
std::string full_text(const std::exception& error);

}  // namespace capstan::training
