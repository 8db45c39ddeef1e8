#pragma once

#include <filesystem>

#include "capstan/config/job_config.h"

namespace capstan::config {

// A job's configuration as a file. JobConfig::to_toml() writes every field of the job that was given or has a
// fixed default as `name = value`. Fields that were derived from others or from the machine (the strategy's
// learning rate, threads per worker) follow in the table [derived]. It is for information only: load() and
// --config ignore it and derive these fields again, so that overrides take effect.
inline constexpr const char* kDerivedTable = "derived";

// Reads such a file, or a user's file with job fields. Throws UserError with the line.
JobConfig load(const std::filesystem::path& file);

}  // namespace capstan::config
