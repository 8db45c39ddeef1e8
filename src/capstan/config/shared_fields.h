#pragma once

#include <string>

#include "capstan/config/job_config.h"

// What all processes of a job have in common (Field::is_shared): the network, its data, the seed, the
// strategy, the optimizer. The first server sends it to every member that joins, as lines of TOML.
namespace capstan::config {

// Every shared field, with the values of this job; defaults too. Throws UserError (JobConfig::resolved).
std::string job_text(const JobConfig& config);
// Those that a flag or a file has given.
std::string given_text(const JobConfig& config);

// One line for each shared field that `member` gives another value than the job has, with both; empty where
// nothing contradicts. Throws UserError for a text that is not one of the above.
std::string contradictions(const std::string& job, const std::string& member);

// Makes a member's configuration that of the job. What is per process, such as folders and threads, stays.
// Throws UserError as above.
void adopt(JobConfig& config, const std::string& job);

}  // namespace capstan::config
