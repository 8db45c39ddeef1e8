#include "capstan/job/module_file.h"

#include <fmt/format.h>

#include "capstan/base/random_access_file.h"
#include "capstan/checkpoint/checksum.h"
#include "capstan/user_error.h"

namespace capstan::job {

std::string module_digest(const std::filesystem::path& file) {
  try {
    return fmt::format("{:016x}", checkpoint::checksum(RandomAccessFile(file)));
  } catch (const UserError& error) {
    throw UserError(fmt::format("--network: {}; every worker needs the module's file", error.what()));
  }
}

void set_module_digest(config::JobConfig& config) {
  if (!config.has_module()) return;
  const auto digest = module_digest(config.network);
  if (!config.module_digest.empty() && config.module_digest != digest)
    throw UserError(fmt::format(
        "--network {}: is another module (digest {}) than that of the job ({}): use the same file",
        config.network, digest, config.module_digest));
  config.module_digest = digest;
}

}  // namespace capstan::job
