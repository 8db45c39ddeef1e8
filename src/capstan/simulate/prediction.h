#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capstan::simulate {

// What a worker's time goes into.
enum class TimeCategory : std::uint8_t {
  kCompute,
  kCores,       // computing more slowly, since others need the cores too
  kOwnLink,     // its bytes and the way, were it alone
  kServerLink,  // other workers' bytes before its own, at the servers
  kUpdate,      // the servers' work on updates
  kOthers,      // the strategy lets it wait for other workers
  kDown,
  kCount
};
inline constexpr std::size_t kTimeCategories = static_cast<std::size_t>(TimeCategory::kCount);
const char* name(TimeCategory what);

// How often a push was so many updates old when it was applied; index by updates.
using Histogram = std::vector<std::uint64_t>;
// The least value that this part, 0 to 1, of all do not exceed.
std::uint64_t quantile(const Histogram& histogram, double part);

struct Prediction {
  std::string strategy;
  std::uint32_t workers = 0;
  double seconds = 0;  // of the fake clock
  double samples_per_second = 0;
  double updates_per_second = 0;

  std::uint64_t updates = 0;
  std::uint64_t rounds = 0;   // that workers have completed: with weights again
  std::uint64_t pushes = 0;   // that servers got
  std::uint64_t applied = 0;  // of those
  std::uint64_t dropped = 0;
  std::uint64_t buffered = 0;  // at the end
  std::uint64_t failures = 0;
  std::uint64_t lost_rounds = 0;  // computed or under way when their worker failed
  double pushed_bytes = 0, pulled_bytes = 0;

  Histogram staleness;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;

  // Busy parts, 0 to 1: of the server with the largest shard; cores of the machine, where it is one.
  double incoming = 0, outgoing = 0, updating = 0, cores = 0;
  std::array<double, kTimeCategories> spent{};  // parts of workers' time, 1 in all

  double part(TimeCategory what) const { return spent[static_cast<std::size_t>(what)]; }
};

}  // namespace capstan::simulate
