#pragma once

#include <filesystem>
#include <string>

#include "capstan/config/job_config.h"

// The file of a TorchScript module, which every worker of a job needs.
namespace capstan::job {

// 16 hexadecimal digits: XXH3 of the file's bytes. Throws UserError if it cannot be read.
std::string module_digest(const std::filesystem::path& file);

// Sets config.module_digest if the job trains a module. Throws UserError if the file cannot be read, and if
// the configuration has the digest of another file: a run resumes, and a worker joins, with the same module.
void set_module_digest(config::JobConfig& config);

}  // namespace capstan::job
