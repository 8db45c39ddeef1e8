#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "capstan/config/job_config.h"

namespace capstan::job {

// The place of a process in a job whose processes are started one by one, on one host or many: rank 0 runs
// the server and leaves the run folder, every other rank is a worker. A value.
struct Ranks {
  std::optional<std::uint32_t> rank;  // none: the job is not started by ranks
  std::uint32_t world_size = 0;       // processes of the job
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;

  std::string master() const;  // "host:port" of rank 0
  bool is_worker() const { return rank && *rank > 0; }
  std::uint32_t worker() const { return *rank - 1; }

  // Checks the place, and makes the job that of the ranks: so many workers, and where rank 0 listens. Throws
  // UserError.
  void apply_to(config::JobConfig& config) const;
};

// The command that resumes a run, from any folder. `program` is capstan's path.
std::string resume_command(const std::string& program, const std::filesystem::path& run, const Ranks& ranks,
                           const std::filesystem::path& token_file);

}  // namespace capstan::job
