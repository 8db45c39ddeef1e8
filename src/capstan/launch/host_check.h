#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/base/json.h"

namespace capstan::launch {

enum class Verdict { kGood, kWarning, kMissing };

// One requirement of training, and whether this machine meets it.
struct Finding {
  std::string subject;
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string remedy;  // how to fix it; empty if the verdict is good
  friend bool operator==(const Finding&, const Finding&) = default;
};

struct HostCheck {
  std::vector<Finding> findings;

  bool good() const;  // nothing is missing
  std::string text() const;
  Json json() const;
};

// Runs all checks: creates shared memory, listens on a port of this host, and starts capstan-torch with a
// timeout of 20 s. Calls prepare_compute_environment(). Not thread-safe.
HostCheck check_host();

// The verdicts as functions of measured values.

Finding cores_finding(long usable, long online);
// `meminfo` is the text of /proc/meminfo.
Finding memory_finding(std::string_view meminfo);
// nullopt: /dev/shm does not exist.
Finding dev_shm_finding(std::optional<double> free_bytes);
// nullopt: no limit.
Finding open_files_finding(std::optional<std::uint64_t> limit);
// `line` is the output of `capstan-torch describe`; nullopt if there is none.
Finding libtorch_finding(const std::optional<std::string>& line, const std::string& program);

}  // namespace capstan::launch
