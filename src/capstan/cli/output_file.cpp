#include "capstan/cli/output_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/unique_fd.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

// Of files that exist or not.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
}

// Also of links to files that do not exist yet.
fs::path end_of_links(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i)
    path = path.parent_path() / fs::read_symlink(path, error);  // an absolute one replaces the folder
  return path;
}

}  // namespace

OutputFile::OutputFile(std::string flag, const fs::path& path, std::span<const OutputFile* const> others,
                       std::span<const std::string> inputs)
    : flag_(std::move(flag)), path_(path) {
  if (path.empty()) return;
  for (const auto* other : others)
    if (other->is_wanted() && is_same_file(other->path_, path))
      fail(fmt::format("is also the file of --{}", other->flag_));
  for (const auto& input : inputs)
    if (is_same_file(input, path)) fail("is read by this command, too");
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::is_directory(status)) fail("is a folder; give the name of a file in it");
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  path_ = end_of_links(path);
  guarded([&] { file_ = std::make_unique<checkpoint::AtomicFile>(path_); });
}

template <class Function>
void OutputFile::guarded(Function function) const {
  try {
    function();
  } catch (const UserError& wrong) {  // names the file
    throw UserError(fmt::format("--{}: {}", flag_, wrong.what()));
  }
}

void OutputFile::write(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  if (file_)
    return guarded([&] {
      file_->write(bytes);
      file_->commit();
    });
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) fail(std::strerror(errno));
  while (!bytes.empty()) {
    const auto written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::fail(const std::string& why) const {
  throw UserError(fmt::format("--{} {}: {}", flag_, path_.string(), why));
}

}  // namespace capstan::cli
