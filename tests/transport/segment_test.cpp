#include "capstan/transport/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "capstan/user_error.h"

namespace capstan::transport {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// More than any address space, and a legal size of a file.
constexpr std::size_t kTooLarge = std::size_t{1} << 62;

TEST(Segment, ReadOnlyMeansTheKernelRefusesAWritableMapping) {
  const Segment segment = Segment::create(5000, Segment::PeerMay::kRead);
  ASSERT_EQ(::mmap(nullptr, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd(), 0), MAP_FAILED);
  EXPECT_LT(::pwrite(segment.fd(), "x", 1, 0), 0);
  const auto peer = segment.map_again();
  ASSERT_TRUE(peer.is_ok());
  EXPECT_FALSE(peer->is_writable());
  EXPECT_LT(::mprotect(peer->bytes().data(), 5000, PROT_READ | PROT_WRITE), 0);
  segment.bytes()[17] = std::byte{5};
  EXPECT_EQ(peer->bytes()[17], std::byte{5});
}

TEST(Segment, WritableOneIsWritableByBoth) {
  const Segment segment = Segment::create(64, Segment::PeerMay::kReadAndWrite);
  const auto peer = segment.map_again();
  ASSERT_TRUE(peer.is_ok());
  ASSERT_TRUE(peer->is_writable());
  peer->floats()[15] = 2.5F;
  EXPECT_EQ(segment.floats()[15], 2.5F);
}

TEST(Segment, ItsSizeAndSealsCannotBeChanged) {
  const Segment segment = Segment::create(8192, Segment::PeerMay::kReadAndWrite);
  EXPECT_NE(::ftruncate(segment.fd(), 0), 0);
  EXPECT_NE(::ftruncate(segment.fd(), 1 << 20), 0);
  EXPECT_NE(::fcntl(segment.fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(Segment, DescriptorsWithoutSealsAreMalformed) {
  // Each needs the seal that the other has.
  for (const int seal : {F_SEAL_GROW, F_SEAL_SHRINK}) {
    UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
    ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, seal), 0);
    EXPECT_EQ(Segment::map(std::move(unsealed)).status().code(), StatusCode::kMalformed) << seal;
  }
  UniqueFd no_memory(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Segment::map(std::move(no_memory)).status().code(), StatusCode::kMalformed);
  UniqueFd empty(::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  EXPECT_EQ(Segment::map(std::move(empty)).status().code(), StatusCode::kMalformed);
}

TEST(Segment, MemoryThatCannotBeAllocatedIsAUserErrorWithItsSize) {
  // The first cannot be mapped; the second is not even a size of a file.
  for (const std::size_t bytes : {kTooLarge, std::size_t{1} << 63}) {
    EXPECT_THAT([&] { Segment::create(bytes, Segment::PeerMay::kRead); },
                ThrowsMessage<UserError>(
                    HasSubstr("cannot allocate " + std::to_string(bytes) + " bytes of shared memory: ")));
  }
}

TEST(Segment, APeersSegmentThatDoesNotFitIsAStatus) {
  UniqueFd large(::memfd_create("large", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(large.get(), static_cast<off_t>(kTooLarge)), 0);
  ASSERT_EQ(::fcntl(large.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  const auto mapped = Segment::map(std::move(large));
  EXPECT_EQ(mapped.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(mapped.status().message(),
            "cannot map a segment of " + std::to_string(kTooLarge) + " bytes: Cannot allocate memory");
}

TEST(Segment, ASecondMappingWithoutAFreeDescriptorIsAStatus) {
  const Segment segment = Segment::create(64, Segment::PeerMay::kRead);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const auto again = segment.map_again();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(again.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(again.status().message(), HasSubstr("cannot duplicate a segment's descriptor"));
}

TEST(Segment, PartsAreMappedIntoAReservation) {
  const Segment segment = Segment::create(3 * 4096, Segment::PeerMay::kRead);
  const auto peer = segment.map_again();
  ASSERT_TRUE(peer.is_ok());
  auto* at = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_TRUE(peer->map_part(2 * 4096, 4096, at));
  ASSERT_TRUE(peer->map_part(0, 4096, at + 4096));
  segment.bytes()[3 * 4096 - 1] = std::byte{7};
  segment.bytes()[0] = std::byte{9};
  EXPECT_EQ(at[4095], std::byte{7});
  EXPECT_EQ(at[4096], std::byte{9});
  EXPECT_LT(::mprotect(at, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_FALSE(peer->map_part(100, 4096, at));  // not a page
  ::munmap(at, 2 * 4096);
}

TEST(Segment, StaysWhereItIsIfItCannotMove) {
  Segment segment = Segment::create(64, Segment::PeerMay::kRead);
  auto* const address = segment.bytes().data();
  const auto moved = segment.move_to(address + 1);  // not the begin of a page
  EXPECT_EQ(moved.code(), StatusCode::kUnavailable);
  EXPECT_EQ(moved.message(), "cannot move a segment's mapping: Invalid argument");
  EXPECT_EQ(segment.bytes().data(), address);
  segment.bytes()[0] = std::byte{1};
}

TEST(Segment, MovesIntoAReservationAndLeavesTheUnmappingToIt) {
  const std::size_t page = 4096;
  auto* room = static_cast<std::byte*>(
      ::mmap(nullptr, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(room, MAP_FAILED);
  {
    Segment segment = Segment::create(page + 1, Segment::PeerMay::kRead);
    segment.bytes()[page] = std::byte{9};
    const auto peer = segment.map_again();
    ASSERT_TRUE(peer.is_ok());
    ASSERT_TRUE(segment.move_to(room + page).is_ok());
    EXPECT_EQ(segment.bytes().data(), room + page);
    EXPECT_EQ(room[2 * page], std::byte{9});
    room[page] = std::byte{7};  // still writable, though new mappings are not
    EXPECT_EQ(peer->bytes()[0], std::byte{7});
    const Segment moved = std::move(segment);
    EXPECT_EQ(moved.bytes().data(), room + page);
    EXPECT_FALSE(segment);  // NOLINT(bugprone-use-after-move): that is what is asked
  }
  EXPECT_EQ(room[page], std::byte{7}) << "the mapping belongs to the reservation now";
  ::munmap(room, 4 * page);
}

}  // namespace
}  // namespace capstan::transport
