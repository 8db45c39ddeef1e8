#pragma once

#include <string>

#include "capstan/config/job_config.h"

// The fields with the same value in all processes of a job (Field::is_shared): the network, its data, the
// seed, the strategy, the optimizer. The leader sends them to every member that joins, as lines of TOML.
namespace capstan::config {

// Every shared field, defaults included. Throws UserError (JobConfig::resolved).
std::string job_text(const JobConfig& config);
// Only the shared fields that a flag or a file has set.
std::string given_text(const JobConfig& config);

// The shared fields for which `member` has another value than the job, with both values, separated by "; ";
// empty if there is none. Throws UserError for a text that neither function above has written.
std::string contradictions(const std::string& job, const std::string& member);

// Sets a member's shared fields to the job's values. Fields per process, such as folders and threads, stay.
// A server must not choose files outside of the member's folders: a module's name has no folder, and files of
// the dataset have neither an absolute path nor "..", unless the member has the same value itself. Throws
// UserError for these, for contradictions, and as above.
void adopt(JobConfig& config, const std::string& job);

}  // namespace capstan::config
