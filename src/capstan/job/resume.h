#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/config/job_config.h"

// Which run is resumed, and what may differ from before.
namespace capstan::job {

// The folder of the run that `--resume PATH` means: a run's, or that of one of its checkpoints.
std::filesystem::path run_of(const std::filesystem::path& path);

// The configuration that comes with it; empty where there is none.
std::filesystem::path configuration_of(const std::filesystem::path& path);

// What `--resume auto` finds below a folder of runs: the run that was begun last of those that have
// checkpoints and whose configuration is the same job. Where none is: which came closest, and why not.
struct SameJob {
  std::optional<std::filesystem::path> run;
  std::string why_not;  // one line; empty where no run has checkpoints
};
SameJob find_same_job(const std::filesystem::path& runs, const config::JobConfig& config);

// One line for each field that the run resumes with another value. Throws UserError that names the fields
// that cannot change. Nothing where the run has no configuration.
std::vector<std::string> changes(const std::filesystem::path& run, const config::JobConfig& now);

// True where a run has left anything: a checkpoint, or weights of at least one update.
bool has_made_an_update(const std::filesystem::path& run);

// The checkpoint that `config.resume` names, checked as a whole, and its run. `auto` means the run in
// `config.train_dir`; nothing where that has no checkpoint: then the run begins. `complaints` takes one line
// for each newer checkpoint that is damaged. Throws UserError where there is no good checkpoint.
struct Resumed {
  checkpoint::Found from;
  std::filesystem::path run;
};
std::optional<Resumed> find_resume(const config::JobConfig& config, std::vector<std::string>& complaints);

}  // namespace capstan::job
