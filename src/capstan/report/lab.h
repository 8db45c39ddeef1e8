#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/metrics/statistics.h"

// The result of `capstan bench ps`: configurations of trainers and servers, each measured in several runs.
namespace capstan::report {

// The value of an option; null for one that was not given.
using LabValue = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;
using LabOptions = std::vector<std::pair<std::string, LabValue>>;

struct LabMetric {
  std::string rank;  // "trainer 0", "all trainers", "server 2", "all servers"
  std::string name;  // type and name: "forward_metric,forward_pass"
  std::string unit;  // "ms"
  metrics::Statistics statistics;
};

// Where the time of a mean step goes, in milliseconds. Communication is the part that a trainer waits for.
struct LabStep {
  double data = 0, forward = 0, backward = 0, communication = 0, optimizer = 0;

  double sum() const { return data + forward + backward + communication + optimizer; }
};

struct LabBytes {
  std::uint64_t pushed = 0, pulled = 0;
};

// One measured run of a configuration.
struct LabRun {
  double seconds = 0;
  std::uint64_t steps = 0, samples = 0;
  double samples_per_second = 0;
  std::optional<double> loss;  // none if it is not finite
  LabBytes bytes;
  std::optional<double> hidden_communication;  // the part behind backward, 0 … 1; none without communication
  LabStep step;
  std::vector<LabMetric> metrics;
  std::vector<double> straggler_ms;  // of every bucket: from its first to its last gradient
};

struct LabConfiguration {
  std::string name;    // unique in its result
  LabOptions options;  // all of them
  LabOptions axis;     // those that vary in this experiment: {"trainers", 2}
  std::vector<LabRun> runs;
  std::optional<std::string> error;  // one line; such a configuration may have no runs
};

struct LabMachine {
  std::string cpu;
  std::uint64_t cores = 0, memory_bytes = 0;
};

struct LabResult {
  bool ok = true;    // no configuration failed, and the measurement was not interrupted
  std::string when;  // ISO 8601
  LabOptions versions;
  LabMachine machine;
  std::string experiment;
  std::vector<LabConfiguration> configurations;
};

// A result and the file that it was read from.
struct LabFile {
  std::string path;
  LabResult result;
};

inline constexpr const char* kLabKind = "capstan-lab";
inline constexpr std::uint64_t kLabSchema = 1;

// The result as its file has it; lab_reader.h reads it back.
Json lab_json(const LabResult& result);

std::string text_of(const LabValue& value);

// It has runs, and did not fail.
bool is_measured(const LabConfiguration& configuration);
// Samples per second of each run.
std::vector<double> throughputs(const LabConfiguration& configuration);
// The mean of all runs; there must be one.
double mean_throughput(const LabConfiguration& configuration);
LabStep mean_step(const LabConfiguration& configuration);
// The index of the run with the median throughput (of two, the slower one); there must be a run.
std::size_t median_run(const LabConfiguration& configuration);
// The name without the experiment's: "trainers=2" of "ddp_cpu_rpc [trainers=2]".
std::string short_name(const LabResult& result, const LabConfiguration& configuration);

}  // namespace capstan::report
