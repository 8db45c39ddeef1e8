#include "capstan/transport/local/local.h"

#include <cstring>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "capstan/transport/local/framing.h"
#include "fabric.h"

namespace capstan::transport::testing {
namespace {

using ::testing::ElementsAre;

// A server with one valid client, and a raw socket that sends arbitrary bytes.
class RawLocal : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = local::listen(loop_, 0, [this](std::unique_ptr<Connection> connection) {
      servers_.push_back(std::move(connection));
      at_server_.emplace_back();
      servers_.back()->set_handler(&at_server_.back());
    });
    const std::string address = listener_->address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    good_ = std::move(*local::connect(loop_, static_cast<std::uint16_t>(port)));
    good_->set_handler(&at_good_);

    raw_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string text = std::string(1, '\0') + "capstan-" + std::to_string(port);
    std::copy(text.begin(), text.end(), name.sun_path);
    ASSERT_EQ(::connect(raw_.get(), reinterpret_cast<sockaddr*>(&name),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size())),
              0);
    ASSERT_TRUE(run_until(loop_, [&] { return servers_.size() == 2; }));
  }

  void write_raw(Bytes bytes, int fd = -1, int fd_again = -1) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    iovec part{copy.data(), copy.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    const std::size_t fds = fd < 0 ? 0 : fd_again < 0 ? 1 : 2;
    if (fds > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds * sizeof(int));
      const int both[] = {fd, fd_again};
      std::memcpy(CMSG_DATA(header), both, fds * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(raw_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void write_raw(const local::Header& header, int fd = -1, int fd_again = -1) {
    write_raw(std::as_bytes(std::span(&header, 1)), fd, fd_again);
  }

  void expect_only_raw_ends(StatusCode code) {
    ASSERT_TRUE(run_until(loop_, [&] { return at_server_[1].ends.size() == 1; }));
    EXPECT_EQ(at_server_[1].ends[0].code(), code) << at_server_[1].ends[0].message();
    good_->send(bytes_of("still here"));
    ASSERT_TRUE(run_until(loop_, [&] { return at_server_[0].frames.size() == 1; }));
    EXPECT_TRUE(at_server_[0].ends.empty());
    EXPECT_TRUE(at_good_.ends.empty());
  }

  EventLoop loop_;
  std::unique_ptr<Listener> listener_;
  std::deque<Recorder> at_server_;
  std::vector<std::unique_ptr<Connection>> servers_;
  Recorder at_good_;
  std::unique_ptr<Connection> good_;
  UniqueFd raw_;
};

TEST_F(RawLocal, GarbageEndsThatConnectionOnly) {
  write_raw(pattern(1000, 1));
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, OverlongFrameIsNotWaitedFor) {
  write_raw(local::Header{.frame_bytes = kMaxFrameBytes + 1});
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, OverlongPayloadIsNotWaitedFor) {
  write_raw(local::Header{.payload_bytes = kMaxPayloadBytes + 1});
  expect_only_raw_ends(StatusCode::kMalformed);
  EXPECT_EQ(at_server_[1].places, 0);
}

TEST_F(RawLocal, UnknownFlagsAreMalformed) {
  write_raw(local::Header{.flags = 2});
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, MissingDescriptorIsMalformed) {
  write_raw(local::Header{.flags = local::kHasSegment});
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, SurplusDescriptorIsMalformed) {
  const Segment segment = Segment::create(4096, Segment::PeerMay::kRead);
  write_raw(local::Header{}, segment.fd());
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, TwoDescriptorsAreMalformed) {
  const Segment segment = Segment::create(4096, Segment::PeerMay::kRead);
  write_raw(local::Header{.flags = local::kHasSegment}, segment.fd(), segment.fd());
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, DescriptorWithinAPayloadIsMalformed) {
  const Segment segment = Segment::create(4096, Segment::PeerMay::kRead);
  write_raw(local::Header{.payload_bytes = 100});
  ASSERT_TRUE(run_until(loop_, [&] { return at_server_[1].places == 1; }));
  write_raw(pattern(100, 2), segment.fd());
  expect_only_raw_ends(StatusCode::kMalformed);
}

TEST_F(RawLocal, UnsealedMemoryIsMalformed) {
  const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  write_raw(local::Header{.flags = local::kHasSegment}, unsealed.get());
  expect_only_raw_ends(StatusCode::kMalformed);
}

// More than this process can map, which is not the server's fault.
TEST_F(RawLocal, MemoryThatDoesNotFitEndsThatConnectionOnly) {
  const UniqueFd large(::memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(large.get(), off_t{1} << 62), 0);
  ASSERT_EQ(::fcntl(large.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  write_raw(local::Header{.flags = local::kHasSegment}, large.get());
  expect_only_raw_ends(StatusCode::kUnavailable);
}

TEST_F(RawLocal, EndWithinAMessageIsAnEnd) {
  write_raw(local::Header{.frame_bytes = 10});
  drain(loop_);
  raw_.reset();
  expect_only_raw_ends(StatusCode::kClosed);
  EXPECT_TRUE(at_server_[1].frames.empty());
}

TEST_F(RawLocal, MessageMayComeByteByByte) {
  const Segment segment = Segment::create(4096, Segment::PeerMay::kRead);
  local::Header header{.frame_bytes = 3, .payload_bytes = 4};
  const Bytes plain = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes(plain.begin(), plain.end());
  for (const char c : std::string("abcWXYZ")) bytes.push_back(static_cast<std::byte>(c));
  local::Header second{.flags = local::kHasSegment};
  const Bytes with_segment = std::as_bytes(std::span(&second, 1));
  for (const auto& byte : bytes) {
    write_raw(Bytes(&byte, 1));
    loop_.run_once(SteadyClock::now());
  }
  for (std::size_t i = 0; i < with_segment.size(); ++i) {
    write_raw(with_segment.subspan(i, 1), i == 0 ? segment.fd() : -1);
    loop_.run_once(SteadyClock::now());
  }
  ASSERT_TRUE(run_until(loop_, [&] { return at_server_[1].frames.size() == 2; }));
  EXPECT_THAT(at_server_[1].frames, ElementsAre("abc", ""));
  EXPECT_EQ(text_of(at_server_[1].payloads[0]), "WXYZ");
  EXPECT_EQ(at_server_[1].segments.size(), 1U);
}

// The kernel may hand over the rest of one segment's message together with the next one and its descriptor.
TEST_F(RawLocal, SegmentsMayComeRightBehindASplitHeader) {
  const Segment first = Segment::create(4096, Segment::PeerMay::kRead);
  const Segment second = Segment::create(8192, Segment::PeerMay::kRead);
  const local::Header header{.flags = local::kHasSegment};
  const Bytes bytes = std::as_bytes(std::span(&header, 1));
  write_raw(bytes.first(8), first.fd());
  drain(loop_);
  write_raw(bytes.subspan(8));
  write_raw(header, second.fd());
  ASSERT_TRUE(run_until(loop_, [&] { return at_server_[1].segments.size() == 2; }));
  EXPECT_EQ(at_server_[1].segments[0].size(), 4096U);
  EXPECT_EQ(at_server_[1].segments[1].size(), 8192U);
}

// A client that connects without end must not keep the loop from its other work.
TEST_F(RawLocal, WaitingClientsAreAcceptedAFewAtATime) {
  const auto port = std::stoi(listener_->address().substr(listener_->address().rfind(':') + 1));
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 100; ++i)
    clients.push_back(std::move(*local::connect(loop_, static_cast<std::uint16_t>(port))));
  bool ran = false;
  loop_.call_at(loop_.now(), [&] { ran = true; });
  loop_.run_once(SteadyClock::now());
  EXPECT_TRUE(ran);
  EXPECT_GT(servers_.size(), 2U);
  EXPECT_LT(servers_.size(), 50U);
  EXPECT_TRUE(run_until(loop_, [&] { return servers_.size() == 102; }));
}

}  // namespace
}  // namespace capstan::transport::testing
