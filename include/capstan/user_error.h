#pragma once

#include "capstan/cxx20.h"

#include <stdexcept>
#include <string>

namespace capstan {

// Wrong input from the user: a flag, a file, a port in use, an argument of the library. The message is one
// line: what is wrong, where, and what is allowed. Capstan's own programs end with exit code 2.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace capstan
