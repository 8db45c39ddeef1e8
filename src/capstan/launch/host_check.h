#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/base/json.h"

namespace capstan::launch {

enum class Verdict { kGood, kWarning, kMissing };

// One thing that training needs, and whether this machine has it.
struct Finding {
  std::string subject;
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string remedy;  // how to fix it; empty where the verdict is good
  friend bool operator==(const Finding&, const Finding&) = default;
};

struct HostCheck {
  std::vector<Finding> findings;

  bool good() const;  // nothing is missing
  std::string text() const;
  Json json() const;
};

// Looks at everything in turn: shares memory, listens on a port of this host, and starts capstan-torch, for
// which it waits 20 s at most. Sets this process's environment as prepare_compute_environment() does. Not
// thread-safe.
HostCheck check_host();

// The judgements, of facts.

Finding cores_finding(long usable, long online);
// `meminfo` is the text of /proc/meminfo.
Finding memory_finding(std::string_view meminfo);
// None: the folder does not exist.
Finding dev_shm_finding(std::optional<double> free_bytes);
// None: there is no limit.
Finding open_files_finding(std::optional<std::uint64_t> limit);
// `line` is what `capstan-torch describe` prints; none where it prints nothing.
Finding libtorch_finding(const std::optional<std::string>& line, const std::string& program);

}  // namespace capstan::launch
