// Included first by every header of the library: ends the compilation early if the compiler or its standard
// is too old, before the errors that would follow.
#pragma once

#if __cplusplus < 202002L
#error Capstan needs C++20: compile with -std=c++20 and GCC 11, Clang 14 or a newer compiler
#include <C++20>  // does not exist: unlike #error, this ends the compilation at once
#endif
