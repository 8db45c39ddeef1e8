// Messages round-trip, and malformed ones are rejected.

#include "capstan/wire/messages.h"

#include <gtest/gtest.h>

#include "support/random_message.h"
#include "wire/allocation_watch.h"

namespace capstan::wire {
namespace {

using testing::field_texts;
using testing::kMessageTypes;
using testing::random_message;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

std::string decode_error(Bytes frame) {
  const auto message = decode(frame);
  return message ? "" : message.status().message();
}

TEST(Messages, EveryTypeRoundTrips) {
  for (std::size_t type = 0; type < kMessageTypes; ++type) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const auto message = random_message(type, seed);
      const auto back = decode(encode(message));
      ASSERT_TRUE(back) << name_of(message) << " " << seed << ": " << back.status().message();
      ASSERT_EQ(back->index(), type);
      ASSERT_EQ(field_texts(*back), field_texts(message)) << name_of(message) << " " << seed;
    }
  }
}

TEST(Messages, EveryTruncationIsRejected) {
  for (std::size_t type = 0; type < kMessageTypes; ++type) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto frame = encode(random_message(type, seed));
      for (std::size_t size = 0; size < frame.size(); ++size) {
        const auto cut = decode(Bytes(frame).first(size));
        ASSERT_FALSE(cut) << "type " << type << " cut to " << size << " of " << frame.size();
        ASSERT_EQ(cut.status().code(), StatusCode::kMalformed);
      }
    }
  }
}

TEST(Messages, OneSurplusByteIsRejected) {
  for (std::size_t type = 0; type < kMessageTypes; ++type) {
    auto frame = encode(random_message(type, 7));
    frame.push_back(std::byte{0});
    EXPECT_NE(decode_error(frame).find("bytes left over"), std::string::npos) << "type " << type;
  }
}

// Written by hand from docs/wire_format.md.
TEST(Messages, APushHasTheBytesOfTheDocument) {
  const Push push{{0x01020304}, {0x1122334455667788}, {5}, {6}, {0x100}, 32, 1.5f, 1000, 7, 9, 1};
  EXPECT_EQ(encode(push), bytes({
                              0x09, 0x00,                                      // type
                              0x04, 0x03, 0x02, 0x01,                          // worker
                              0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // incarnation
                              0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // sequence
                              0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // steps
                              0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // version
                              0x20, 0x00, 0x00, 0x00,                          // samples
                              0x00, 0x00, 0xc0, 0x3f,                          // loss
                              0xe8, 0x03, 0x00, 0x00,                          // compute_us
                              0x07, 0x00, 0x00, 0x00,                          // wait_us
                              0x09, 0x00, 0x00, 0x00,                          // data_us
                              0x01, 0x00, 0x00, 0x00,                          // phase
                              0x00,                                            // no rows
                          }));
}

TEST(Messages, RowsHaveTheBytesOfTheDocument) {
  Push push;
  push.rows = {6, {2, 3}, 4, 5};
  const auto with = encode(push), without = encode(Push{});
  ASSERT_EQ(with.size(), without.size() + 36);
  EXPECT_EQ(std::vector<std::byte>(with.end() - 37, with.end()),
            bytes({
                0x01,                          // present
                0x06, 0, 0, 0, 0,    0, 0, 0,  // held
                0x02, 0, 0, 0,                 // two counts
                0x02, 0, 0, 0, 0x03, 0, 0, 0,  //
                0x04, 0, 0, 0, 0,    0, 0, 0,  // pushed_bytes
                0x05, 0, 0, 0, 0,    0, 0, 0,  // pulled_bytes
            }));
  Weights weights;
  weights.rows = {7, false, {9}, 8};
  const auto answer = encode(weights);
  ASSERT_EQ(answer.size(), encode(Weights{}).size() + 25);
  EXPECT_EQ(std::vector<std::byte>(answer.end() - 26, answer.end()), bytes({
                                                                         0x01,  // present
                                                                         0x07, 0, 0, 0, 0, 0, 0, 0,  // number
                                                                         0x00,                       // whole
                                                                         0x01, 0, 0, 0,  // one count
                                                                         0x09, 0, 0, 0,  //
                                                                         0x08, 0, 0, 0, 0, 0, 0, 0,  // bytes
                                                                     }));
}

TEST(Messages, WeightsHaveTheBytesOfTheDocument) {
  EXPECT_EQ(encode(Weights{3, {0x0a0b}, {2}, true, false}),
            bytes({
                0x0b, 0x00,                          // type
                0x03, 0x00, 0x00, 0x00, 0, 0, 0, 0,  // request
                0x0b, 0x0a, 0x00, 0x00, 0, 0, 0, 0,  // version
                0x02, 0x00, 0x00, 0x00, 0, 0, 0, 0,  // applied
                0x01,                                // stop
                0x00,                                // buffers
                0x00,                                // no rows
            }));
}

TEST(Messages, StringsListsAndOptionsHaveTheBytesOfTheDocument) {
  const Join join{Role::kObserver, 3u,  {1}, {{"ab", {2, -1}, true}}, {}, {7, 8, 9},
                  "x", {{"d", {"*"}}}, {{6, 3}}};
  EXPECT_EQ(encode(join), bytes({
                              0x04, 0x00,                                   // type
                              0x01,                                         // role
                              0x01, 0x03, 0x00, 0x00, 0x00,                 // index: present, 3
                              0x01, 0,    0,    0,    0,    0,    0,    0,  // incarnation
                              0x01, 0x00, 0x00, 0x00,                       // one tensor
                              0x02, 0x00, 0x00, 0x00, 'a',  'b',            // its name
                              0x02, 0x00, 0x00, 0x00,                       // two dimensions
                              0x02, 0,    0,    0,    0,    0,    0,    0,  //
                              0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,     //
                              0xff,                                         //
                              0x01,                                         // sparse
                              0x00, 0x00, 0x00, 0x00,                       // no buffers
                              0x07, 0,    0,    0,    0,    0,    0,    0,  // samples
                              0x08, 0,    0,    0,    0,    0,    0,    0,  // seed
                              0x09, 0,    0,    0,    0,    0,    0,    0,  // batch
                              0x01, 0x00, 0x00, 0x00, 'x',                  // job
                              0x01, 0x00, 0x00, 0x00,                       // one phase
                              0x01, 0x00, 0x00, 0x00, 'd',                  // its name
                              0x01, 0x00, 0x00, 0x00,                       // one glob
                              0x01, 0x00, 0x00, 0x00, '*',                  //
                              0x01, 0x00, 0x00, 0x00,                       // one bucket
                              0x06, 0,    0,    0,    0,    0,    0,    0,  // elements
                              0x03, 0,    0,    0,    0,    0,    0,    0,  // columns
                          }));
}

TEST(Messages, UnknownTypesAreRejectedByNumber) {
  EXPECT_NE(decode_error(bytes({30, 0})).find("30"), std::string::npos);
  EXPECT_NE(decode_error(bytes({0xff, 0xff})).find("65535"), std::string::npos);
  EXPECT_FALSE(decode({}));
}

TEST(Messages, ValuesOutsideAnEnumerationAreRejected) {
  EXPECT_TRUE(decode(bytes({6, 0, 1})));                                          // Share of the weights
  EXPECT_FALSE(decode(bytes({6, 0, 2})));                                         // an invalid arena
  EXPECT_TRUE(decode(bytes({16, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1})));  // Gone: a server, lost
  EXPECT_FALSE(decode(bytes({16, 0, 3, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1})));
}

TEST(Messages, ABoolIsZeroOrOne) {
  EXPECT_FALSE(decode(bytes({16, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2})));
  EXPECT_FALSE(decode(bytes({16, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0xff})));
  auto join = encode(Join{});
  join[3] = std::byte{2};  // the flag of the optional index
  EXPECT_FALSE(decode(join));
}

TEST(Messages, HugeCountsAreRejectedWithoutAllocating) {
  const std::vector<std::vector<std::byte>> frames = {
      bytes({22, 0, 0xff, 0xff, 0xff, 0xff, 'x'}),                        // StopRequest: 4 GiB of text
      bytes({22, 0, 0x00, 0x00, 0x00, 0x40, 'x'}),                        // 1 GiB
      bytes({17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1}),  // ApplyOrder: 4 G contributions
      bytes({4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0}),  // Join: 2 G tensors
  };
  for (const auto& frame : frames) {
    largest_allocation = 0;
    EXPECT_FALSE(decode(frame));
    EXPECT_LT(largest_allocation, 4096u);
  }
}

// A list may claim as many items as there are bytes; decoding ends with the bytes.
TEST(Messages, ACountThatJustFitsAllocatesLittle) {
  auto frame = bytes({17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10, 0x00, 0x00});
  frame.resize(frame.size() + 4096, std::byte{0});
  largest_allocation = 0;
  EXPECT_FALSE(decode(frame));
  EXPECT_LT(largest_allocation, std::size_t{64} * 1024);
}

// A whole frame of the smallest globs: 4 bytes each, and a string of 32 bytes in memory.
TEST(Messages, ManyEmptyGlobsAllocateInProportion) {
  Join join;
  join.phases = {{"d", std::vector<std::string>(250'000)}};
  const auto frame = encode(join);
  EXPECT_GT(frame.size(), 1'000'000u);
  largest_allocation = 0;
  ASSERT_TRUE(decode(frame));
  EXPECT_LE(largest_allocation, 2 * 250'000 * sizeof(std::string));
}

TEST(Messages, TextPastTheLimitIsRejectedAndTruncatedWhenWritten) {
  EXPECT_TRUE(decode(encode(StopRequest{std::string(kMaxStringBytes, 'x')})));
  auto frame = bytes({22, 0, 0x01, 0x00, 0x01, 0x00});
  frame.resize(frame.size() + kMaxStringBytes + 1, std::byte{'x'});
  EXPECT_FALSE(decode(frame));
  const auto cut = decode(encode(StopRequest{std::string(kMaxStringBytes + 5, 'x')}));
  ASSERT_TRUE(cut);
  EXPECT_EQ(std::get<StopRequest>(*cut).reason.size(), kMaxStringBytes);
}

TEST(WireLayout, RoundTrip) {
  const FlatLayout layout({{"conv.weight", {20, 1, 5, 5}}, {"scale", {}}, {"b", {3}}});
  const auto back = from_wire(to_wire(layout));
  ASSERT_TRUE(back) << back.status().message();
  EXPECT_EQ(back->difference(layout), "");
}

TEST(WireLayout, InvalidTensorsAreRejected) {
  const std::int64_t huge = std::int64_t{1} << 34;
  const std::vector<std::vector<Tensor>> bad = {
      {},             // no tensor
      {{"", {1}}},    // no name
      {{"a", {0}}},   // no element
      {{"a", {-1}}},  //
      {{"a", {2, std::numeric_limits<std::int64_t>::min()}}},
      {{"a", {huge + 1}}},                                      // too many elements
      {{"a", {1 << 20, 1 << 20}}},                              //
      {{"a", {std::int64_t{1} << 32, std::int64_t{1} << 32}}},  // 2^64 wraps to 0
      {{"a", {1, 1, 1, 1, 1, 1, 1, 1, 1}}},                     // nine dimensions
      {{std::string(1025, 'a'), {1}}},                          // a long name
      {{"a\nb", {1}}},                                          // two lines
      {{"a\xff", {1}}},                                         // not UTF-8
      {{"a", {huge / 2}}, {"b", {huge / 2}}},                   // too many together
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto layout = from_wire(bad[i]);
    ASSERT_FALSE(layout) << "case " << i;
    EXPECT_EQ(layout.status().code(), StatusCode::kMalformed);
  }
  EXPECT_TRUE(from_wire({{"a", {1, 1, 1, 1, 1, 1, 1, 1}}}));
  EXPECT_TRUE(from_wire({{"a", {huge - 16}}}));
}

TEST(WirePhases, RoundTrip) {
  const FlatLayout layout({{"d", {1}}, {"g", {1}}});
  const std::vector<StepPhase> phases = {{"first", {"d*", "?"}}, {"zweite Phase für g", {}}};
  const auto back = phases_from_wire(to_wire(phases), layout);
  ASSERT_TRUE(back) << back.status().message();
  EXPECT_EQ(*back, phases);
}

}  // namespace
}  // namespace capstan::wire
