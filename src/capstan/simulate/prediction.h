#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capstan::simulate {

// The categories of a worker's time.
enum class TimeCategory : std::uint8_t {
  kCompute,
  kCores,       // slowdown of computing by shared cores
  kOwnLink,     // transfer and latency on an idle network
  kServerLink,  // waiting for other workers' transfers at the servers
  kUpdate,      // waiting for the servers' updates
  kOthers,      // waiting for other workers, by the strategy
  kDown,
  kCount
};
inline constexpr std::size_t kTimeCategories = static_cast<std::size_t>(TimeCategory::kCount);
const char* name(TimeCategory what);

// Number of pushes by staleness when they were applied.
using Histogram = std::vector<std::uint64_t>;
// The smallest value that a fraction `part` (0 to 1) of all does not exceed.
std::uint64_t quantile(const Histogram& histogram, double part);

struct Prediction {
  std::string strategy;
  std::uint32_t workers = 0;
  double seconds = 0;  // simulated
  double samples_per_second = 0;
  double updates_per_second = 0;

  std::uint64_t updates = 0;
  std::uint64_t rounds = 0;   // completed by workers: up to the new weights
  std::uint64_t pushes = 0;   // received by servers
  std::uint64_t applied = 0;  // of these pushes
  std::uint64_t dropped = 0;
  std::uint64_t buffered = 0;  // at the end
  std::uint64_t failures = 0;
  std::uint64_t lost_rounds = 0;  // in progress when their worker failed
  double pushed_bytes = 0, pulled_bytes = 0;

  Histogram staleness;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;

  // Utilization, 0 to 1: of the server with the largest shard, and of the cores of a shared machine.
  double incoming = 0, outgoing = 0, updating = 0, cores = 0;
  std::array<double, kTimeCategories> spent{};  // fractions of the workers' time; their sum is 1

  double part(TimeCategory what) const { return spent[static_cast<std::size_t>(what)]; }
};

}  // namespace capstan::simulate
