#include "capstan/fetch/output_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace capstan::fetch {

OutputFile::OutputFile(std::filesystem::path path, Open how) : path_(std::move(path)) {
  const int mode = how == Open::kFresh ? O_EXCL : O_APPEND;
  file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | mode, 0644));
  const auto end = file_ ? ::lseek(file_.get(), 0, SEEK_END) : -1;
  if (end < 0) {
    fail("written");
  } else {
    size_ = static_cast<std::uint64_t>(end);
  }
}

bool OutputFile::write(std::span<const std::byte> bytes) {
  if (error_) return false;
  while (!bytes.empty()) {
    const auto written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
  return true;
}

bool OutputFile::start_over() {
  if (error_) return false;
  if (::ftruncate(file_.get(), 0) != 0) return fail("emptied");
  size_ = 0;
  return true;
}

bool OutputFile::sync() {
  if (error_) return false;
  if (::fsync(file_.get()) != 0 || ::close(file_.release()) != 0) return fail("written");
  return true;
}

bool OutputFile::fail(const char* doing) {
  error_ = fmt::format("{} cannot be {}: {}", path_.string(), doing, std::strerror(errno));
  return false;
}

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) (void)::fsync(fd.get());
}

}  // namespace capstan::fetch
