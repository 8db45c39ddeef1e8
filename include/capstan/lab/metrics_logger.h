#pragma once

#include "capstan/cxx20.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::lab {

// Identifies one measurement of a type: epoch and index of a step, or batch and bucket.
struct MetricKey {
  std::uint64_t first = 0, second = 0;
  bool operator==(const MetricKey&) const = default;
};

// All measurements of one name.
struct Series {
  std::string type;  // "forward_metric"
  std::string name;  // "forward_pass"
  std::string unit;  // "ms"
  std::vector<double> values;
};

// Measures how long named parts of a process take: type → key → (name, start, end). A repeated start or end
// and an unknown key are mistakes of the caller and throw std::logic_error with type, name and key.
// Thread-safe; a measurement may end on another thread than it began on. Costs about a tenth of a microsecond
// for a start or an end, and allocates only when the number of measurements exceeds all earlier ones.
class MetricsLogger {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = Clock::time_point (*)();  // for tests

  explicit MetricsLogger(Now now = Clock::now) : now_(now) {}
  MetricsLogger(const MetricsLogger&) = delete;
  MetricsLogger& operator=(const MetricsLogger&) = delete;

  // While it is off, nothing is recorded and nothing throws. Do not switch between a start and its end.
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  void record_start(std::string_view type, MetricKey key, std::string_view name);
  void record_end(std::string_view type, MetricKey key);
  // A whole measurement whose times are known.
  void record(std::string_view type, MetricKey key, std::string_view name, Clock::time_point start,
              Clock::time_point end);
  // A value that is no time: a number of at least 0. A name of a type always has the same unit.
  void record_value(std::string_view type, std::string_view name, std::string_view unit, double value);

  // Times in milliseconds, and values, sorted by type and name; in a series, in the order of starts. Throws
  // std::logic_error if a measurement has no end.
  std::vector<Series> series() const;
  // Removes all measurements; keeps the memory for the next ones.
  void clear();

 private:
  struct Measurement {
    MetricKey key;
    std::uint32_t name = 0;  // index in Type::names
    bool ended = false;
    Clock::time_point start, end;
  };
  // The measurements of a type in the order of their starts, with a hash table (open addressing) of their
  // indices. Unlike std::unordered_map it allocates nothing for a single key.
  struct Type {
    std::string name;
    std::vector<std::string> names;
    std::vector<Measurement> measurements;
    std::vector<std::uint32_t> slots;  // index + 1; 0: free. The size is a power of two.

    std::uint32_t& slot_of(MetricKey key);
    std::uint32_t name_index(std::string_view name);
    void make_room();
  };

  Type& type_of(std::string_view name);
  Measurement& add(std::string_view type, MetricKey key, std::string_view name);

  const Now now_;
  std::atomic<bool> enabled_ = true;
  mutable std::mutex mutex_;
  std::vector<Type> types_;     // guarded by mutex_; a process has few
  std::vector<Series> values_;  // guarded by mutex_: those that are no times
};

}  // namespace capstan::lab
