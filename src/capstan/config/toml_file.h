#pragma once

#include <filesystem>

#include "capstan/config/job_config.h"

namespace capstan::config {

// A job as a file. JobConfig::to_toml() writes every field of the job that was given or has a fixed default
// as `name = value`. What was not given and follows from the rest or from the machine (the learning rate of
// the strategy, threads per worker) comes last, in the table [derived], which is there to be read by people
// and is ignored by load() and --config: such a field is derived anew, from what is overridden too.
inline constexpr const char* kDerivedTable = "derived";

// Reads such a file, or one of a user's that names fields of a job alone. Throws UserError with the line.
JobConfig load(const std::filesystem::path& file);

}  // namespace capstan::config
