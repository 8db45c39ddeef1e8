#pragma once

#include <cstdint>

namespace capstan::metrics {

// Resources this process has used, as the kernel reports them. Thread-safe.
struct ProcessUsage {
  std::uint64_t private_bytes = 0;  // resident memory without shared segments
  double cpu_seconds = 0;           // user and system, all threads
};

ProcessUsage process_usage();

}  // namespace capstan::metrics
