#pragma once

#include "capstan/cxx20.h"

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
