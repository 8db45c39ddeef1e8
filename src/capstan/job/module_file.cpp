#include "capstan/job/module_file.h"

#include <fstream>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "capstan/checkpoint/checksum.h"
#include "capstan/user_error.h"

namespace capstan::job {

std::string module_digest(const std::filesystem::path& file) {
  std::error_code error;
  std::ifstream in;
  if (std::filesystem::is_regular_file(file, error)) in.open(file, std::ios::binary);  // a pipe would block
  if (!in.is_open())
    throw UserError(fmt::format(
        "--network {}: there is no such file, or it cannot be read; every worker needs the module's file",
        file.string()));
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return fmt::format("{:016x}", checkpoint::checksum(std::as_bytes(std::span(bytes))));
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
