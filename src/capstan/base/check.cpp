#include "capstan/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace capstan {

void check_failed(const char* file, int line, const char* condition, const char* expected) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, expected);
  std::abort();
}

}  // namespace capstan
