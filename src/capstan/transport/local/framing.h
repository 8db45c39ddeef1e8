#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "capstan/base/unique_fd.h"
#include "capstan/status.h"
#include "capstan/transport/connection.h"

struct iovec;

// The format of the AF_UNIX stream: per message a header, the frame's bytes, the payload's bytes. A segment's
// descriptor is attached to the header's first byte. Both ends run on one host, so numbers are in its byte
// order.
namespace capstan::transport::local {

inline constexpr std::uint32_t kMagic = 0x4e505343;  // "CSPN"
inline constexpr std::uint32_t kHasSegment = 1;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t flags = 0;
  std::uint64_t frame_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

// Validates a peer's header; called before anything is allocated for its message.
Status check(const Header& header);

// One non-blocking sendmsg, with `fd` (-1: none) attached to the first byte. Returns the bytes that the
// kernel accepted, 0 if it accepts none now, or -1 if the peer has closed.
std::ptrdiff_t write_some(int socket, iovec* parts, std::size_t count, int fd);

struct Read {
  enum class Outcome { kData, kNothingNow, kEnd };
  Outcome outcome = Outcome::kEnd;
  std::size_t bytes = 0;
  UniqueFd fd;
  bool surplus_fds = false;  // more than one was attached to these bytes
};

// One non-blocking recvmsg into `to`.
Read read_some(int socket, MutableBytes to);

}  // namespace capstan::transport::local
