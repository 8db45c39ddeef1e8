#include "capstan/job/module_file.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "capstan/base/random_access_file.h"
#include "capstan/checkpoint/checksum.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

namespace fs = std::filesystem;

// A file whose name differs from `file` in the case of letters only; empty if there is none.
std::string in_other_case(const fs::path& file) {
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (lower(it->path().filename().string()) == lower(file.filename().string()))
      return (file.parent_path() / it->path().filename()).string();
  return "";
}

// Networks of the zoo have no dot in their names.
void check_file(const config::JobConfig& config) {
  const auto& name = config.network;
  if (!config.task.empty() || !config.program.empty()) return;
  if (!config.has_module() && name.find('.') == std::string::npos) return;
  std::error_code error;
  if (!fs::is_regular_file(name, error)) {
    const auto near = in_other_case(name);
    throw UserError(fmt::format(
        "--network {}: no such file{}", name,
        near.empty() ? "; every worker needs the module's file" : fmt::format("; did you mean {}?", near)));
  }
  if (!config.has_module())
    throw UserError(fmt::format(
        "--network {}: the name of a TorchScript module's file must end in .pt, .pth or .ts", name));
}

}  // namespace

std::string module_digest(const std::filesystem::path& file) {
  try {
    return fmt::format("{:016x}", checkpoint::checksum(RandomAccessFile(file)));
  } catch (const UserError& error) {
    throw UserError(fmt::format("--network: {}; every worker needs the module's file", error.what()));
  }
}

void set_module_digest(config::JobConfig& config) {
  check_file(config);
  if (!config.has_module()) return;
  const auto digest = module_digest(config.network);
  if (!config.module_digest.empty() && config.module_digest != digest)
    throw UserError(fmt::format(
        "--network {}: is another module (digest {}) than that of the job ({}): use the same file",
        config.network, digest, config.module_digest));
  config.module_digest = digest;
}

}  // namespace capstan::job
