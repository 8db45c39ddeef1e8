#include "capstan/transport/segment.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::transport {
namespace {

std::string reason() {
  return std::strerror(errno);
}

[[noreturn]] void no_memory(std::size_t bytes) {
  throw UserError("cannot allocate " + std::to_string(bytes) + " bytes of shared memory: " + reason());
}

}  // namespace

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      address_(std::exchange(other.address_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      writable_(other.writable_),
      owns_mapping_(other.owns_mapping_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(writable_, other.writable_);
  std::swap(owns_mapping_, other.owns_mapping_);
  return *this;
}

Segment::~Segment() {
  if (address_ != nullptr && owns_mapping_) ::munmap(address_, size_);
}

Segment Segment::create(std::size_t bytes, PeerMay peer_may) {
  CAPSTAN_CHECK(bytes > 0, "a segment has at least one byte");
  Segment segment;
  segment.fd_ = UniqueFd(::memfd_create("capstan", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.fd_ || ::ftruncate(segment.fd(), static_cast<off_t>(bytes)) != 0) no_memory(bytes);
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd(), 0);
  if (address == MAP_FAILED) no_memory(bytes);
  segment.address_ = address;
  segment.size_ = bytes;
  segment.writable_ = true;
  // FUTURE_WRITE forbids all writable mappings but the existing one.
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (peer_may == PeerMay::kRead) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(segment.fd(), F_ADD_SEALS, seals) != 0) no_memory(bytes);
  return segment;
}

Result<Segment> Segment::map(UniqueFd fd) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded) {
    return Status::malformed("received a segment that is not sealed against resizing");
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || info.st_size <= 0)
    return Status::malformed("received an empty segment");

  Segment segment;
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  segment.writable_ = address != MAP_FAILED;
  if (!segment.writable_) address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    return Status::unavailable("cannot map a segment of " + std::to_string(bytes) + " bytes: " + reason());
  }
  segment.fd_ = std::move(fd);
  segment.address_ = address;
  segment.size_ = bytes;
  return segment;
}

Result<Segment> Segment::map_again() const {
  UniqueFd copy(::fcntl(fd(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return Status::unavailable("cannot duplicate a segment's descriptor: " + reason());
  return map(std::move(copy));
}

Status Segment::move_to(void* at) {
  CAPSTAN_CHECK(address_ != nullptr, "only a mapped segment can move");
  // The kernel refuses a new writable mapping of a read-only segment even to its creator, so the existing
  // mapping moves. By system call, because UCX replaces libc's mremap by a version that loses the new
  // address.
  const long moved = ::syscall(SYS_mremap, address_, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (moved == -1) return Status::unavailable("cannot move a segment's mapping: " + reason());
  address_ = at;
  owns_mapping_ = false;
  return Status::ok();
}

Status Segment::map_part(std::size_t offset, std::size_t bytes, void* at) const {
  CAPSTAN_CHECK(offset <= size_ && bytes <= size_ - offset, "a part lies within its segment");
  const void* mapped = ::mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd(), static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return Status::unavailable("cannot map a part of a segment: " + reason());
  return Status::ok();
}

}  // namespace capstan::transport
