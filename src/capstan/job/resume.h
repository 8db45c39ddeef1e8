#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/config/job_config.h"

// Which run is resumed, and which fields may change.
namespace capstan::job {

// The run's folder for `--resume PATH`, where PATH is a run's folder or a checkpoint's; empty for a
// checkpoint that is not in a run's folder.
std::filesystem::path run_of(const std::filesystem::path& path);

// The configuration file of that run; empty if there is none, or nothing is in it.
std::filesystem::path configuration_of(const std::filesystem::path& path);

// The same for a run that is to be resumed. Throws UserError if PATH is the folder of a run that has
// checkpoints but no configuration: defaults would make it another job.
std::filesystem::path configuration_to_resume(const std::filesystem::path& path);

// Throws UserError if the folder holds a run, which a new run would overwrite.
void check_no_run(const std::filesystem::path& folder);

// What `--resume auto` finds in a folder of runs: the newest run that has checkpoints and whose configuration
// is the same job. If there is none: the most similar run, and how it differs.
struct SameJob {
  std::optional<std::filesystem::path> run;
  std::string why_not;  // one line; empty if no run has checkpoints
};
SameJob find_same_job(const std::filesystem::path& runs, const config::JobConfig& config);

// One line for each field that the resume changes; empty if the run has no configuration. Throws UserError
// with the fields that cannot change.
std::vector<std::string> changes(const std::filesystem::path& run, const config::JobConfig& now);

// True if the run has a checkpoint, or weights after at least one update.
bool has_made_an_update(const std::filesystem::path& run);

// The checkpoint that `config.resume` names, fully verified, and its run. `auto` means the run in
// `config.train_dir`; none if that has no checkpoint. Adds a line to `complaints` for each newer checkpoint
// that is damaged. Throws UserError if there is no valid checkpoint.
struct Resumed {
  checkpoint::Found from;
  std::filesystem::path run;
};
std::optional<Resumed> find_resume(const config::JobConfig& config, std::vector<std::string>& complaints);

}  // namespace capstan::job
