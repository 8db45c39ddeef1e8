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

// Whether a run can be resumed with another value.
enum class OnResume {
  kMustMatch,    // no: the checkpoint would be unusable or change its meaning
  kSameJob,      // yes if the user names the run; `--resume auto` treats it as another job
  kMayDiffer,    // yes: duration, resources, output
  kNotCompared,  // not a property of the job
};

// One field of the configuration: flag, key of configuration files, help and rules. To add an option to a
// command: a member of JobConfig, an entry in fields(), and the code that uses it.
struct Field {
  Setting setting;
  Commands commands = kNoCommand;  // commands that have the flag; configuration files may always set it
  OnResume on_resume = OnResume::kNotCompared;
  // An empty value (absent, 0 or "") means "not given": then JobConfig::resolved() derives the value.
  bool derived = false;
  // May differ between the processes of one job: folders, addresses, threads, devices.
  bool per_process = false;
  // The part of the value that must match if `on_resume` is kMustMatch; the rest is kSameJob. Null: all of
  // it.
  std::string (*must_match)(const std::string& text) = nullptr;
  // For an alternative flag: the field that it sets, and whether it modifies that field's value instead of
  // replacing it.
  std::string_view sets = {};
  bool adjusts = false;

  std::string_view name() const { return setting.name; }
  // The field that changes when this one is given.
  std::string_view target() const { return sets.empty() ? setting.name : sets; }
  // All processes of a job have the same value; workers receive it from the server.
  bool is_shared() const { return is_kept() && !per_process; }
  // Part of the job, and so of the run's config.toml.
  bool is_kept() const { return sets.empty() && on_resume != OnResume::kNotCompared; }
};

// The table, bound to the members of `config`, which must outlive it. Defaults are those of JobConfig.
std::vector<Field> fields(JobConfig& config);

// True for a field that only the networks and tasks of Capstan have, not the task of another program.
bool is_for_networks(const Field& field);

// True for a derived field that was not given.
bool is_unset(const Field& field);

}  // namespace capstan::config
