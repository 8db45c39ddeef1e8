// Trainers that violate the protocol: their connection ends, and the run with the rank as the reason. Peers
// that have not joined disturb nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "averaging/play.h"
#include "server/raw_peer.h"
#include "support/memory_limit.h"

namespace capstan {
namespace {

using averaging::Shape;
using testing::averaging_job;
using testing::AveragingCluster;
using ::testing::HasSubstr;
using testing::RawPeer;

const std::vector<Shape> kBuckets{{4, 0}, {6, 2}};

wire::Join raw_join(std::uint32_t rank) {
  wire::Join join;
  join.index = rank;
  join.incarnation = {9};
  join.buckets = kBuckets;
  return join;
}

wire::Bucket bucket_of(std::uint32_t bucket, std::uint32_t rows = 0, std::uint32_t first = 0) {
  return {{1}, {9}, 0, bucket, first, rows};
}

float bits(std::uint32_t row) {
  return std::bit_cast<float>(row);
}

// The wrongdoer is trainer 1; trainer 0 learns it.
void expect_loss(bool share_memory, const std::string& reason, const std::function<void(RawPeer&)>& misdeed) {
  AveragingCluster cluster(share_memory, averaging_job(2), testing::on_arrival());
  const auto honest = cluster.join(0, kBuckets);
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), raw_join(1)));
  honest->next_batch();
  honest->send(0);
  misdeed(peer);
  EXPECT_THAT(peer.wait_closed().value_or(""), HasSubstr(reason));
  const auto told = honest->wait(0).status().message();
  EXPECT_THAT(told, HasSubstr("trainer 1 is lost"));
  EXPECT_THAT(told, HasSubstr(reason));
}

TEST(AveragingMisbehaviour, WrongSizes) {
  expect_loss(false, "bucket 0 with a payload of 12 bytes, not 16", [](RawPeer& p) {
    p.send(bucket_of(0), {1, 2, 3});
  });
  expect_loss(false, "bucket 0 with a payload of 0 bytes, not 16", [](RawPeer& p) { p.send(bucket_of(0)); });
  expect_loss(false, "bucket 1 with a payload of 8 bytes, not 12", [](RawPeer& p) {
    p.send(bucket_of(1, 1), {bits(0), 2});
  });
  expect_loss(true, "bucket 0 with a payload of 0 bytes, not 16",  // nothing was shared
              [](RawPeer& p) { p.send(bucket_of(0)); });
}

TEST(AveragingMisbehaviour, WrongRows) {
  expect_loss(false, "rows that are not increasing", [](RawPeer& p) {
    p.send(bucket_of(1, 2), {bits(1), bits(0), 1, 1, 1, 1});
  });
  expect_loss(false, "rows that are not increasing", [](RawPeer& p) {
    p.send(bucket_of(1, 2), {bits(1), bits(1), 1, 1, 1, 1});
  });
  expect_loss(false, "rows that are not increasing from 0 to below 3", [](RawPeer& p) {
    p.send(bucket_of(1, 1), {bits(3), 1, 1});
  });
  expect_loss(false, "bucket 1 with 4 rows where at most 3 are possible",
              [](RawPeer& p) { p.send(bucket_of(1, 4), std::vector<float>(12)); });
  expect_loss(false, "bucket 0 with 1 rows where at most 0", [](RawPeer& p) {
    p.send(bucket_of(0, 1), {1, 2, 3, 4});
  });
  expect_loss(false, "bucket 1 with 4294967295 rows",
              [](RawPeer& p) { p.send(bucket_of(1, 0xffffffff), {1}); });
}

TEST(AveragingMisbehaviour, WrongRowsInSharedMemory) {
  const averaging::ArenaLayout layout(kBuckets);
  const auto segment = transport::Segment::create(layout.bytes(), transport::Segment::PeerMay::kRead);
  const auto rows = layout.rows(segment.floats(), 1);
  rows[0] = 2;
  rows[1] = 1;
  const auto share = wire::Share{wire::Arena::kGradients};
  expect_loss(true, "rows that are not increasing", [&](RawPeer& p) {
    p.send(share, segment);
    p.send(bucket_of(1, 2));
  });
  expect_loss(true, "bucket 1 with 2 rows", [&](RawPeer& p) {  // beyond the end of the list
    p.send(share, segment);
    p.send(bucket_of(1, 2, 2));
  });
  const auto small = transport::Segment::create(64, transport::Segment::PeerMay::kRead);
  expect_loss(true, "a segment of 64 bytes", [&](RawPeer& p) { p.send(share, small); });
  expect_loss(true, "unexpected Share", [&](RawPeer& p) { p.send(share); });
}

TEST(AveragingMisbehaviour, WrongIdentities) {
  const std::vector<float> values(4);
  expect_loss(false, "another trainer", [&](RawPeer& p) {
    p.send(wire::Bucket{{0}, {9}, 0, 0, 0, 0}, values);
  });
  expect_loss(false, "another trainer", [&](RawPeer& p) {
    p.send(wire::Bucket{{1}, {8}, 0, 0, 0, 0}, values);
  });
  expect_loss(false, "bucket 2, of which", [&](RawPeer& p) { p.send(bucket_of(2), values); });
  expect_loss(false, "batch 1 of bucket 1 while batch 0 is incomplete", [&](RawPeer& p) {
    p.send(bucket_of(1));
    p.send(wire::Bucket{{1}, {9}, 1, 1, 0, 0});
  });
  expect_loss(false, "unexpected Average", [&](RawPeer& p) { p.send(wire::Average{}); });
  expect_loss(false, "unexpected Push", [&](RawPeer& p) { p.send(wire::Push{}); });
}

TEST(AveragingMisbehaviour, OfPeersThatHaveNotJoinedDisturbsNothing) {
  AveragingCluster cluster(true, averaging_job(1), testing::on_arrival());
  const auto honest = cluster.join(0, kBuckets);
  RawPeer early(cluster.network(), "0");
  ASSERT_TRUE(early.shake_hands(cluster.token()));
  early.send(bucket_of(0));
  EXPECT_TRUE(early.wait_closed());
  for (const auto& buckets : {std::vector<Shape>{}, std::vector<Shape>{{7, 2}}}) {
    RawPeer peer(cluster.network(), "0");
    auto join = raw_join(0);
    join.buckets = buckets;
    EXPECT_FALSE(peer.join(cluster.token(), join));
  }
  RawPeer observer(cluster.network(), "0");
  auto join = raw_join(0);
  join.role = wire::Role::kObserver;
  EXPECT_FALSE(observer.join(cluster.token(), join));
  honest->next_batch();
  honest->bucket(0)[3] = 5;
  honest->send(0);
  ASSERT_TRUE(honest->wait(0));
  EXPECT_EQ(honest->average(0).values[3], 5);
}

// Sanitizers end the process when an allocation fails.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AveragingMemory, APayloadThatDoesNotFitIsRefused) {
  constexpr std::size_t kBytes = std::size_t{1} << 35;
  void* const reserved =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  {
    AveragingCluster cluster(false, averaging_job(2), testing::on_arrival());
    RawPeer peer(cluster.network(), "0");
    auto join = raw_join(1);
    join.buckets = {{kBytes / sizeof(float), 0}};
    ASSERT_TRUE(peer.join(cluster.token(), join));
    const auto before = testing::limit_memory();
    peer.send_from(bucket_of(0), {static_cast<const std::byte*>(reserved), kBytes});
    EXPECT_EQ(peer.wait_closed(), "not enough memory for a bucket of 34359738368 bytes");
    ::setrlimit(RLIMIT_AS, &before);
  }
  ::munmap(reserved, kBytes);
}
#endif

}  // namespace
}  // namespace capstan
