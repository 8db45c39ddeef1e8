#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "capstan/config/job_config.h"

namespace capstan::job {

// The rank of a process in a job whose processes the user starts, on one host or several: rank 0 runs the
// server and writes the run folder, every other rank is a worker. A value.
struct Ranks {
  std::optional<std::uint32_t> rank;  // none: the job starts its own processes
  std::uint32_t world_size = 0;       // processes of the job
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;

  std::string master() const;  // "host:port" of rank 0
  bool is_worker() const { return rank && *rank > 0; }
  std::uint32_t worker() const { return *rank - 1; }

  // Checks the rank, and sets the job's number of workers and listen address from it. Throws UserError.
  void apply_to(config::JobConfig& config) const;
};

// The command that resumes a run, from any folder. `program` is capstan's path.
std::string resume_command(const std::string& program, const std::filesystem::path& run, const Ranks& ranks,
                           const std::filesystem::path& token_file);

}  // namespace capstan::job
