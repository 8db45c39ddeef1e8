#pragma once

namespace capstan {

// Prints "file:line: check failed: condition: expected" to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* expected);

}  // namespace capstan

// For bugs in Capstan only: an error that a user or a peer can cause is a UserError or a Status.
#define CAPSTAN_CHECK(condition, expected)                               \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::capstan::check_failed(__FILE__, __LINE__, #condition, expected); \
  } while (false)
