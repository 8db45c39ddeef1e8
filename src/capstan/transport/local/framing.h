#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "capstan/base/status.h"
#include "capstan/base/unique_fd.h"
#include "capstan/transport/connection.h"

struct iovec;

// What goes over the AF_UNIX stream: per message a header, the frame's bytes, the payload's bytes. A
// segment's descriptor travels with the header's first byte. Both ends run on one host, so numbers are in
// its own byte order.
namespace capstan::transport::local {

inline constexpr std::uint32_t kMagic = 0x4e505343;  // "CSPN"
inline constexpr std::uint32_t kHasSegment = 1;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t flags = 0;
  std::uint64_t frame_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

// Says what is wrong with a header that came from a peer; nothing is allocated before it was asked.
Status check(const Header& header);

// One sendmsg without blocking, with `fd` (-1: none) attached to the first byte. Returns what the kernel
// took, 0 if it takes nothing now, or -1 if the peer is gone.
std::ptrdiff_t write_some(int socket, iovec* parts, std::size_t count, int fd);

struct Read {
  enum class Outcome { kData, kNothingNow, kEnd };
  Outcome outcome = Outcome::kEnd;
  std::size_t bytes = 0;
  UniqueFd fd;
  bool surplus_fds = false;  // more than one came with these bytes
};

// One recvmsg without blocking into `to`.
Read read_some(int socket, MutableBytes to);

}  // namespace capstan::transport::local
