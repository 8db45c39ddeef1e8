#include "capstan/job/ranks.h"

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

std::string absolute_word(const std::filesystem::path& path) {
  return shell_word(std::filesystem::absolute(path).lexically_normal().string());
}

}  // namespace

std::string Ranks::master() const {
  return fmt::format("{}:{}", master_addr, master_port);
}

void Ranks::apply_to(config::JobConfig& config) const {
  if (!rank) {
    if (world_size > 0) throw UserError("--world-size needs --rank: pass both, or use --workers");
    return;
  }
  if (world_size < 2) throw UserError("--rank needs --world-size of at least 2: one server and one worker");
  if (*rank >= world_size)
    throw UserError(fmt::format("--rank {} is outside --world-size {}: ranks are 0 to {}", *rank, world_size,
                                world_size - 1));
  if (config.servers != 1)
    throw UserError("--rank supports one server: for more, use the commands serve and work");
  if (!config.has_servers())
    throw UserError(fmt::format("--rank needs a server, and strategy {} has none: omit --rank or --strategy",
                                config.strategy));
  config.workers = world_size - 1;
  config.given.insert("workers");
  config.listen = master();
}

std::string resume_command(const std::string& program, const std::filesystem::path& run, const Ranks& ranks,
                           const std::filesystem::path& token_file) {
  auto command = fmt::format("{} train --resume {}", shell_word(program), absolute_word(run));
  if (!ranks.rank) return command;
  command += fmt::format(" --rank {} --world-size {} --master-addr {} --master-port {}", *ranks.rank,
                         ranks.world_size, shell_word(ranks.master_addr), ranks.master_port);
  if (!token_file.empty()) command += " --token-file " + absolute_word(token_file);
  return command;
}

}  // namespace capstan::job
