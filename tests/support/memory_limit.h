#pragma once

#include <cstdint>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace capstan::testing {

// Allows this process another gigabyte of address space; returns the earlier limit.
inline rlimit limit_memory() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  auto limited = before;
  limited.rlim_cur = pages * static_cast<std::uint64_t>(::getpagesize()) + (std::uint64_t{1} << 30);
  ::setrlimit(RLIMIT_AS, &limited);
  return before;
}

}  // namespace capstan::testing
