#include "capstan/wire/frames.h"

#include <gtest/gtest.h>

namespace capstan::wire {
namespace {

std::vector<std::byte> copy(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

std::uint64_t request_of(const Result<std::optional<Message>>& read) {
  return read && *read ? std::get<Pull>(**read).request : ~std::uint64_t{0};
}

class Frames : public ::testing::Test {
 protected:
  std::vector<std::byte> pull(std::uint64_t request) { return copy(writer_.write(Pull{request, {}})); }

  FrameWriter writer_;
  FrameReader reader_;
};

// Written by hand from docs/wire_format.md.
TEST_F(Frames, BeginWithTheirSequenceNumber) {
  (void)writer_.write(Heartbeat{});
  const auto frame = copy(writer_.write(Heartbeat{}));
  EXPECT_EQ(frame,
            (std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
                                    std::byte{0}, std::byte{0}, std::byte{0}, std::byte{13}, std::byte{0}}));
}

TEST_F(Frames, AreReadInOrder) {
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(request_of(reader_.read(pull(i))), i);
}

TEST_F(Frames, ThatAreDuplicatesAreIgnored) {
  const auto first = pull(1), second = pull(2);
  EXPECT_EQ(request_of(reader_.read(first)), 1u);
  for (int i = 0; i < 2; ++i) {
    const auto again = reader_.read(first);
    ASSERT_TRUE(again);
    EXPECT_FALSE(*again);
  }
  EXPECT_EQ(request_of(reader_.read(second)), 2u);
}

TEST_F(Frames, AfterAMissingOneEndTheConnection) {
  (void)pull(1);
  const auto late = reader_.read(pull(2));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.status().code(), StatusCode::kClosed);
  EXPECT_EQ(late.status().message(), "1 messages are missing");
}

TEST_F(Frames, CanBePeeked) {
  const auto first = pull(1), second = pull(2);
  // The payload of a message may begin before the previous message is complete.
  EXPECT_EQ(request_of(reader_.peek(second)), 2u);
  EXPECT_EQ(request_of(reader_.peek(first)), 1u);
  EXPECT_EQ(request_of(reader_.read(first)), 1u);
  const auto again = reader_.peek(first);
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  EXPECT_EQ(request_of(reader_.read(second)), 2u);
}

TEST_F(Frames, ThatAreShortOrInvalidAreMalformed) {
  for (std::size_t size = 0; size < 10; ++size) {
    const auto read = reader_.read(std::vector<std::byte>(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.status().code(), StatusCode::kMalformed) << size;
  }
  EXPECT_EQ(request_of(reader_.read(pull(1))), 1u);
}

}  // namespace
}  // namespace capstan::wire
