#include "capstan/base/random_access_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capstan/user_error.h"

namespace capstan {

// O_NONBLOCK: a pipe, which is refused below, would wait for its writer.
RandomAccessFile::RandomAccessFile(const std::filesystem::path& path)
    : name_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void RandomAccessFile::read(std::uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto got = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? std::strerror(errno) : "it became shorter while it was read");
    at += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void RandomAccessFile::fail(const char* why) const {
  throw UserError(fmt::format("cannot read {}: {}", name_, why));
}

}  // namespace capstan
