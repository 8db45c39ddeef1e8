#include "capstan/checkpoint/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capstan/user_error.h"

namespace capstan::checkpoint {

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  std::string name = path_.string() + ".tmp-XXXXXX";
  file_.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!file_) fail("create");
  temporary_ = name;
  ::fchmod(file_.get(), 0644);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) fail("write");
  if (::close(file_.release()) != 0) fail("write");  // some file systems report a full disk only here
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("write");
  temporary_.clear();
  const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  const UniqueFd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) fail("write");
}

void AtomicFile::fail(const char* doing) const {
  throw UserError(fmt::format("cannot {} {}: {}", doing, path_.string(), std::strerror(errno)));
}

}  // namespace capstan::checkpoint
