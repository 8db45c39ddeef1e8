#pragma once

#include <string_view>
#include <vector>

#include "capstan/config/job_config.h"
#include "capstan/config/setting.h"

namespace capstan::config {

// Commands whose flags are fields of a job, one bit for each.
enum Commands : unsigned {
  kNoCommand = 0,
  kTrain = 1,
  kServe = 2,
  kWork = 4,
  kEval = 8,
  kBenchWire = 16,
  kBenchData = 32
};
constexpr Commands operator|(Commands a, Commands b) {
  return static_cast<Commands>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

// What it means that a run goes on with another value.
enum class OnResume {
  kMustMatch,    // impossible: the checkpoint is of no use, or its meaning changes
  kSameJob,      // possible where the user names the run; `--resume auto` takes it for another job
  kMayDiffer,    // how long, on how much, and how it is watched
  kNotCompared,  // of this process, not of the job
};

// One field of the configuration: flag, key of configuration files, help and rules. To add an option to a
// command: a member of JobConfig, an entry in fields(), and the code that uses it.
struct Field {
  Setting setting;
  Commands commands = kNoCommand;  // which have the flag; configuration files may name it for any command
  OnResume on_resume = OnResume::kNotCompared;
  // An empty value (absent, 0 or "") means "not given": then JobConfig::resolved() derives the value.
  bool derived = false;
  // The processes of one job may differ in it: folders, addresses, threads, devices.
  bool per_process = false;
  // Other names for a field: its name, and whether the value given there is changed rather than replaced.
  std::string_view sets = {};
  bool adjusts = false;

  std::string_view name() const { return setting.name; }
  // The field that changes when this one is given.
  std::string_view target() const { return sets.empty() ? setting.name : sets; }
  // All processes of a job have the same value; workers learn it from the server.
  bool is_shared() const { return is_kept() && !per_process; }
  // Part of the job, so that the run's config.toml has it.
  bool is_kept() const { return sets.empty() && on_resume != OnResume::kNotCompared; }
};

// The table, bound to the members of `config`, which must outlive it. Defaults are those of JobConfig.
std::vector<Field> fields(JobConfig& config);

// True where a derived field was not given.
bool is_unset(const Field& field);

}  // namespace capstan::config
