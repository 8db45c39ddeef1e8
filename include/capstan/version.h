#pragma once

#include "capstan/cxx20.h"

#include <cstdint>

// The version of the headers. docs/library.md says what changes with each number. CMakeLists.txt reads these
// three lines.
#define CAPSTAN_VERSION_MAJOR 0
#define CAPSTAN_VERSION_MINOR 1
#define CAPSTAN_VERSION_PATCH 0

#define CAPSTAN_TEXT_OF_(number) #number
#define CAPSTAN_TEXT_OF(number) CAPSTAN_TEXT_OF_(number)
// As text: "0.1.0".
#define CAPSTAN_VERSION                  \
  CAPSTAN_TEXT_OF(CAPSTAN_VERSION_MAJOR) \
  "." CAPSTAN_TEXT_OF(CAPSTAN_VERSION_MINOR) "." CAPSTAN_TEXT_OF(CAPSTAN_VERSION_PATCH)

namespace capstan {

// The version of the library that the program runs with; it may be newer than the headers.
const char* library_version() noexcept;
// The version of the wire protocol: all processes of a job must have the same one.
std::uint16_t protocol_version() noexcept;

}  // namespace capstan
