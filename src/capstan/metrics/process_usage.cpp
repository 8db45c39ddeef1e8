#include "capstan/metrics/process_usage.h"

#include <cstdio>

#include <sys/resource.h>

namespace capstan::metrics {

ProcessUsage process_usage() {
  ProcessUsage usage;
  if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
    char line[256];
    unsigned long kilobytes = 0;
    while (std::fgets(line, sizeof line, file)) {
      if (std::sscanf(line, "RssAnon: %lu kB", &kilobytes) == 1 ||
          std::sscanf(line, "RssFile: %lu kB", &kilobytes) == 1) {
        usage.private_bytes += std::uint64_t{kilobytes} * 1024;
      }
    }
    std::fclose(file);
  }
  rusage r{};
  ::getrusage(RUSAGE_SELF, &r);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  usage.cpu_seconds = seconds(r.ru_utime) + seconds(r.ru_stime);
  return usage;
}

}  // namespace capstan::metrics
