#include "capstan/transport/local/framing.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capstan/base/unique_fd.h"

namespace {

// Errors that the functions below, which take the place of the C library's, report before they do their work.
std::vector<int> errors;

bool fails() {
  if (errors.empty()) return false;
  errno = errors.front();
  errors.erase(errors.begin());
  return true;
}

}  // namespace

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto next =
      reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(::dlsym(RTLD_NEXT, "sendmsg"));
  return fails() ? -1 : next(socket, message, flags);
}
extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, msghdr*, int)>(::dlsym(RTLD_NEXT, "recvmsg"));
  return fails() ? -1 : next(socket, message, flags);
}

namespace capstan::transport::local {
namespace {

// Two connected sockets.
class Framing : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }
  void TearDown() override { errors.clear(); }

  std::ptrdiff_t write(std::size_t bytes, int fd = -1) {
    bytes_.resize(bytes);
    iovec part{bytes_.data(), bytes};
    return write_some(here_.get(), &part, 1, fd);
  }
  Read read() { return read_some(there_.get(), to_); }

  UniqueFd here_, there_;
  std::vector<std::byte> bytes_;
  std::array<std::byte, 64> to_{};
};

TEST_F(Framing, AFullSocketAcceptsNothingForNow) {
  while (write(1 << 16) > 0) {
  }
  EXPECT_EQ(write(1), 0);
}

// Too many descriptors on their way, or no memory for the message: both pass as the peer reads.
TEST_F(Framing, AShortageOfTheKernelIsNotTheEnd) {
  for (const int error : {ETOOMANYREFS, ENOBUFS, EAGAIN}) {
    errors = {error};
    EXPECT_EQ(write(1), 0) << error;
    EXPECT_EQ(write(1), 1) << error;
  }
}

TEST_F(Framing, ASignalDoesNotEndAWriteOrARead) {
  errors = {EINTR, EINTR};
  EXPECT_EQ(write(5), 5);
  errors = {EINTR, EINTR};
  const auto got = read();
  EXPECT_EQ(got.outcome, Read::Outcome::kData);
  EXPECT_EQ(got.bytes, 5u);
}

TEST_F(Framing, APeerThatHasClosedIsTheEnd) {
  there_.reset();
  EXPECT_EQ(write(1), -1);
  std::swap(here_, there_);
  EXPECT_EQ(read().outcome, Read::Outcome::kEnd);
}

TEST_F(Framing, AnEmptySocketHasNothingNowAndABrokenOneEnds) {
  EXPECT_EQ(read().outcome, Read::Outcome::kNothingNow);
  errors = {ECONNRESET};
  EXPECT_EQ(read().outcome, Read::Outcome::kEnd);
}

TEST_F(Framing, ADescriptorArrivesWithTheBytesAndIsClosedByExec) {
  const UniqueFd sent(::eventfd(7, EFD_CLOEXEC));
  ASSERT_EQ(write(3, sent.get()), 3);
  const auto got = read();
  EXPECT_EQ(got.bytes, 3u);
  EXPECT_FALSE(got.surplus_fds);
  ASSERT_TRUE(got.fd);
  EXPECT_NE(::fcntl(got.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  eventfd_t value = 0;
  ASSERT_EQ(::eventfd_read(got.fd.get(), &value), 0);
  EXPECT_EQ(value, 7u);
}

// More than there is space for are closed by the kernel, and the peer learns of it.
TEST_F(Framing, SurplusDescriptorsAreNoticedAndNotKept) {
  const UniqueFd sent(::eventfd(0, EFD_CLOEXEC));
  for (const std::size_t count : {2u, 3u, 100u}) {
    std::byte byte{};
    iovec part{&byte, 1};
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    const std::vector<int> fds(count, sent.get());
    std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
    const UniqueFd before(::dup(sent.get()));
    ASSERT_EQ(::sendmsg(here_.get(), &message, 0), 1);
    EXPECT_TRUE(read().surplus_fds) << count;
    const UniqueFd after(::dup(sent.get()));
    EXPECT_EQ(after.get(), before.get() + 1) << "the lowest free number: nothing was left open";
  }
}

TEST(FramingHeader, EveryLimitIsTheLargestLegalValue) {
  EXPECT_TRUE(check({.frame_bytes = kMaxFrameBytes, .payload_bytes = kMaxPayloadBytes}));
  for (const auto& [header, message] : std::initializer_list<std::pair<Header, const char*>>{
           {{.magic = kMagic + 1}, "received bytes that are not a message"},
           {{.flags = 2}, "a message has unknown flags"},
           {{.frame_bytes = kMaxFrameBytes + 1}, "a frame of 1048577 bytes was announced"},
           {{.payload_bytes = kMaxPayloadBytes + 1}, "a payload of 68719476737 bytes was announced"}}) {
    EXPECT_EQ(check(header).code(), StatusCode::kMalformed);
    EXPECT_EQ(check(header).message(), message);
  }
}

}  // namespace
}  // namespace capstan::transport::local
