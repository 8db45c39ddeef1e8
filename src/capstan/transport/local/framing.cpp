#include "capstan/transport/local/framing.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/uio.h>

namespace capstan::transport::local {
namespace {

// Space for more descriptors than a message may carry: the kernel closes those that do not fit and sets
// MSG_CTRUNC.
constexpr std::size_t kControlFds = 2;

union Control {
  char bytes[CMSG_SPACE(sizeof(int) * kControlFds)];
  cmsghdr aligned;
};

void take_fds(msghdr& message, Read& read) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      read.surplus_fds |= static_cast<bool>(read.fd);
      read.fd = UniqueFd(fd);
    }
  }
  read.surplus_fds |= (message.msg_flags & MSG_CTRUNC) != 0;
}

}  // namespace

Status check(const Header& header) {
  if (header.magic != kMagic) return Status::malformed("received bytes that are not a message");
  if ((header.flags & ~kHasSegment) != 0) return Status::malformed("a message has unknown flags");
  if (header.frame_bytes > kMaxFrameBytes) {
    return Status::malformed("a frame of " + std::to_string(header.frame_bytes) + " bytes was announced");
  }
  if (header.payload_bytes > kMaxPayloadBytes) {
    return Status::malformed("a payload of " + std::to_string(header.payload_bytes) + " bytes was announced");
  }
  return Status::ok();
}

std::ptrdiff_t write_some(int socket, iovec* parts, std::size_t count, int fd) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  Control control{};
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &fd, sizeof(int));
  }
  ssize_t taken = 0;
  do {
    taken = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (taken < 0 && errno == EINTR);
  if (taken >= 0) return taken;
  // ETOOMANYREFS: too many descriptors in flight; ends as the peer reads.
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
}

Read read_some(int socket, MutableBytes to) {
  iovec part{to.data(), to.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);

  Read read;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    read.outcome = Read::Outcome::kNothingNow;
  } else if (got > 0) {
    read.outcome = Read::Outcome::kData;
    read.bytes = static_cast<std::size_t>(got);
    take_fds(message, read);
  }
  return read;
}

}  // namespace capstan::transport::local
