#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/config/job_config.h"

namespace capstan::cli {

// What `--resume` names: the checkpoint, checked as a whole, and the folder of its run. Nothing where `auto`
// finds nothing: then a run begins. `complaints` takes one line for each newer checkpoint that is damaged.
// Throws UserError where there is no good checkpoint.
struct Resumed {
  checkpoint::Found from;
  std::filesystem::path run;
};
std::optional<Resumed> find_resume(const config::JobConfig& config, std::vector<std::string>& complaints);

}  // namespace capstan::cli
