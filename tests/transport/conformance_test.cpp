#include "conformance.h"

#include <thread>

#include <gmock/gmock.h>

namespace capstan::transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A new transport adds its line here.
constexpr Kind kLoopbackShared = {"loopback", make_loopback_shared, true};
constexpr Kind kLoopbackCopying = {"copying", make_loopback_copying, false};
constexpr Kind kLocal = {"local", make_local, true};
constexpr Kind kUcx = {"ucx", make_ucx, false};
constexpr Kind kFaultless = {"faultless", make_faultless, true};

INSTANTIATE_TEST_SUITE_P(LoopbackShared, Conformance, ::testing::Values(kLoopbackShared));
INSTANTIATE_TEST_SUITE_P(LoopbackCopying, Conformance, ::testing::Values(kLoopbackCopying));
INSTANTIATE_TEST_SUITE_P(Local, Conformance, ::testing::Values(kLocal));
INSTANTIATE_TEST_SUITE_P(Ucx, Conformance, ::testing::Values(kUcx));
INSTANTIATE_TEST_SUITE_P(Faultless, Conformance, ::testing::Values(kFaultless));
// And here, where it shares memory.
INSTANTIATE_TEST_SUITE_P(LoopbackShared, SharedMemory, ::testing::Values(kLoopbackShared));
INSTANTIATE_TEST_SUITE_P(Local, SharedMemory, ::testing::Values(kLocal));
INSTANTIATE_TEST_SUITE_P(Faultless, SharedMemory, ::testing::Values(kFaultless));

TEST_P(Conformance, EchoComesBack) {
  connect_pair();
  at_server().on_message = [](Connection& connection, const Incoming& incoming) {
    connection.send(incoming.frame);
  };
  client_->send(bytes_of("one"));
  client_->send(bytes_of(""));
  client_->send(bytes_of("three"));
  ASSERT_TRUE(run_until([&] { return at_client_.frames.size() == 3; }));
  EXPECT_THAT(at_client_.frames, ElementsAre("one", "", "three"));
  EXPECT_EQ(at_server().places, 0);
  EXPECT_TRUE(client_->is_open());
  EXPECT_FALSE(client_->peer().empty());
}

TEST_P(Conformance, FrameMayChangeOnceSendReturned) {
  connect_pair();
  std::string frame = "before";
  client_->send(bytes_of(frame));
  frame.assign("after!");
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 1; }));
  EXPECT_EQ(at_server().frames[0], "before");
}

TEST_P(Conformance, PayloadLandsBitForBit) {
  connect_pair();
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20, std::size_t{33} << 20}) {
    const auto payload = pattern(size, size);
    std::vector<std::byte> destination(size);
    at_server().on_place = [&](Connection&, Bytes frame, std::size_t bytes) {
      EXPECT_EQ(text_of(frame), "data");
      EXPECT_EQ(bytes, size);
      return Placement::receive(destination);
    };
    at_server().frames.clear();
    int sent = 0;
    client_->send(bytes_of("data"), payload, [&](Status status) {
      EXPECT_TRUE(status) << status.message();
      ++sent;
    });
    EXPECT_EQ(sent, 0) << "never from within send()";
    ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 1 && sent == 1; })) << size;
    EXPECT_TRUE(destination == payload) << size;
    EXPECT_EQ(at_server().payload_sizes.back(), size);
  }
}

TEST_P(Conformance, EmptyPayloadIsAPlainFrame) {
  connect_pair();
  int sent = 0;
  client_->send(bytes_of("nothing"), {}, [&](Status status) { sent += status ? 1 : 100; });
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 1 && sent != 0; }));
  settle();
  EXPECT_EQ(at_server().places, 0);
  EXPECT_EQ(sent, 1);
}

TEST_P(Conformance, ThousandMixedMessagesArriveInOrder) {
  connect_pair();
  const auto source = pattern(1 << 20, 7);
  const auto size_of = [](int i) { return static_cast<std::size_t>(i * 6151 % 400'000 + 1); };
  std::vector<std::byte> destination;
  std::vector<std::string> began;
  at_server().on_place = [&](Connection&, Bytes frame, std::size_t bytes) {
    began.push_back(text_of(frame));
    // A buffer per message: a transport may begin several before the first is complete.
    return Placement::receive(at_server().payloads.emplace_back(bytes));
  };
  int sent = 0;
  std::vector<int> with_payload;
  for (int i = 0; i < 1000; ++i) {
    if (i % 7 == 3) {
      with_payload.push_back(i);
      client_->send(bytes_of(std::to_string(i)), Bytes(source).first(size_of(i)),
                    [&](Status s) { sent += s ? 1 : 0; });
    } else {
      client_->send(bytes_of(std::to_string(i)));
    }
  }
  ASSERT_TRUE(
      run_until([&] { return at_server().frames.size() == 1000 && sent == std::ssize(with_payload); }));
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(at_server().frames[static_cast<std::size_t>(i)], std::to_string(i));
  ASSERT_EQ(began.size(), with_payload.size());
  for (std::size_t k = 0; k < with_payload.size(); ++k) {
    ASSERT_EQ(began[k], std::to_string(with_payload[k]));
    const auto& got = at_server().payloads[k];
    ASSERT_EQ(got.size(), size_of(with_payload[k]));
    ASSERT_TRUE(std::equal(got.begin(), got.end(), source.begin())) << k;
  }
}

TEST_P(Conformance, DiscardedPayloadsLeaveTheStreamIntact) {
  connect_pair();
  at_server().on_place = [](Connection&, Bytes, std::size_t) { return Placement::discard(); };
  const auto small = pattern(100, 1);
  const auto large = pattern(5 << 20, 2);
  int sent = 0;
  const auto count = [&](Status status) { sent += status ? 1 : 100; };
  client_->send(bytes_of("small"), small, count);
  client_->send(bytes_of("large"), large, count);
  client_->send(bytes_of("after"));
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 3 && sent == 2; }));
  EXPECT_THAT(at_server().frames, ElementsAre("small", "large", "after"));
  EXPECT_THAT(at_server().payload_sizes, ElementsAre(small.size(), large.size(), 0U));
}

TEST_P(Conformance, RefusedPayloadEndsThatConnectionOnly) {
  connect_pair();
  Recorder at_other;
  auto other = connect(&at_other);
  other->send(bytes_of("other"));
  ASSERT_TRUE(run_until([&] { return at_server_.size() == 2 && at_server_[1].frames.size() == 1; }));

  at_server().on_place = [](Connection&, Bytes, std::size_t) { return Placement::refuse(); };
  const auto payload = pattern(3 << 20, 3);
  int sent = 0;
  client_->send(bytes_of("unwanted"), payload, [&](Status) { ++sent; });
  ASSERT_TRUE(
      run_until([&] { return at_server().ends.size() == 1 && at_client_.ends.size() == 1 && sent == 1; }));
  EXPECT_EQ(at_server().ends[0].code(), StatusCode::kMalformed);
  EXPECT_FALSE(server().is_open());
  EXPECT_FALSE(client_->is_open());

  other->send(bytes_of("still here"));
  ASSERT_TRUE(run_until([&] { return at_server_[1].frames.size() == 2; }));
  EXPECT_TRUE(at_other.ends.empty());
  EXPECT_EQ(sent, 1);
}

TEST_P(Conformance, FrameOfAMebibyteArrives) {
  connect_pair();
  const auto frame = pattern(kMaxFrameBytes, 4);
  const auto payload = pattern(100'000, 5);
  client_->send(frame);
  client_->send(frame, payload, [](Status) {});
  client_->send(bytes_of("after"));
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 3; }));
  EXPECT_TRUE(at_server().frames[0] == text_of(frame));
  EXPECT_TRUE(at_server().frames[1] == text_of(frame));
  EXPECT_TRUE(at_server().payloads.back() == payload);
  EXPECT_EQ(at_server().frames[2], "after");
}

TEST_P(Conformance, LongerFrameIsRefusedAndEndsTheConnection) {
  connect_pair();
  client_->send(pattern(kMaxFrameBytes + 1, 4));
  EXPECT_FALSE(client_->is_open());
  EXPECT_TRUE(at_client_.ends.empty()) << "never from within send()";
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1 && at_server().ends.size() == 1; }));
  EXPECT_EQ(at_client_.ends[0].code(), StatusCode::kRefused);
  EXPECT_THAT(at_client_.ends[0].message(), HasSubstr(std::to_string(kMaxFrameBytes + 1)));
  EXPECT_TRUE(at_server().frames.empty());
}

TEST_P(Conformance, TwoClientsAreToldApart) {
  at_client_.on_message = nullptr;
  Recorder at_other;
  client_ = connect(&at_client_);
  auto other = connect(&at_other);
  for (int i = 0; i < 50; ++i) {
    client_->send(bytes_of("a" + std::to_string(i)));
    other->send(bytes_of("b" + std::to_string(i)));
  }
  ASSERT_TRUE(run_until([&] {
    return at_server_.size() == 2 && at_server_[0].frames.size() == 50 && at_server_[1].frames.size() == 50;
  }));
  for (std::size_t side = 0; side < 2; ++side) {
    const char letter = at_server_[side].frames[0][0];
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(at_server_[side].frames[static_cast<std::size_t>(i)], letter + std::to_string(i));
    }
    servers_[side]->send(bytes_of(std::string("you are ") + letter));
  }
  ASSERT_TRUE(run_until([&] { return at_client_.frames.size() == 1 && at_other.frames.size() == 1; }));
  EXPECT_EQ(at_client_.frames[0], "you are a");
  EXPECT_EQ(at_other.frames[0], "you are b");
  EXPECT_NE(at_server_[0].frames[0], at_server_[1].frames[0]);
}

TEST_P(Conformance, MessagesWaitForALateHandler) {
  set_handlers_ = false;
  client_ = connect(&at_client_);
  const auto payload = pattern(300'000, 10);
  client_->send(bytes_of("early"));
  client_->send(bytes_of("bulk"), payload, [](Status) {});
  ASSERT_TRUE(run_until([&] { return servers_.size() == 1; }));
  settle();
  EXPECT_TRUE(at_server().frames.empty());
  server().set_handler(&at_server());
  EXPECT_TRUE(at_server().frames.empty()) << "not from within set_handler()";
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 2; }));
  EXPECT_THAT(at_server().frames, ElementsAre("early", "bulk"));
  EXPECT_TRUE(at_server().payloads.back() == payload);
}

TEST_P(Conformance, EndWaitsForALateHandler) {
  set_handlers_ = false;
  client_ = connect(&at_client_);
  client_->send(bytes_of("early"));
  ASSERT_TRUE(run_until([&] { return servers_.size() == 1; }));
  client_.reset();
  settle();
  server().set_handler(&at_server());
  ASSERT_TRUE(run_until([&] { return at_server().ends.size() == 1; }));
  EXPECT_THAT(at_server().frames, ElementsAre("early"));
}

TEST_P(Conformance, BothEndsKnowWhetherTheyShareMemory) {
  connect_pair();
  EXPECT_EQ(client_->shares_memory(), GetParam().shares_memory);
  EXPECT_EQ(server().shares_memory(), GetParam().shares_memory);
}

TEST_P(SharedMemory, SegmentIsTheSameMemory) {
  connect_pair();
  const Segment read_only = Segment::create(10'000, Segment::PeerMay::kRead);
  const Segment shared = Segment::create(20'000, Segment::PeerMay::kReadAndWrite);
  read_only.bytes()[9'999] = std::byte{1};
  client_->send(bytes_of("before"));
  client_->send(bytes_of("read"), read_only);
  client_->send(bytes_of("write"), shared);
  client_->send(bytes_of("after"));
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 4; }));
  EXPECT_THAT(at_server().frames, ElementsAre("before", "read", "write", "after"));
  ASSERT_EQ(at_server().segments.size(), 2U);
  const Segment& seen = at_server().segments[0];
  const Segment& ours = at_server().segments[1];
  ASSERT_EQ(seen.size(), 10'000U);
  EXPECT_FALSE(seen.is_writable());
  EXPECT_EQ(seen.bytes()[9'999], std::byte{1});
  read_only.bytes()[0] = std::byte{2};
  EXPECT_EQ(seen.bytes()[0], std::byte{2});
  ASSERT_TRUE(ours.is_writable());
  ours.bytes()[19'999] = std::byte{3};
  EXPECT_EQ(shared.bytes()[19'999], std::byte{3});
}

TEST_P(SharedMemory, ManySegmentsAndPayloadsMix) {
  connect_pair();
  const auto payload = pattern(700'000, 12);
  std::vector<Segment> segments;
  for (int i = 0; i < 50; ++i) {
    segments.push_back(Segment::create(4096, Segment::PeerMay::kReadAndWrite));
    segments.back().bytes()[0] = static_cast<std::byte>(i);
    client_->send(bytes_of("segment"), segments.back());
    client_->send(bytes_of("payload"), payload, [](Status) {});
  }
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 100; }));
  ASSERT_EQ(at_server().segments.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(at_server().segments[i].bytes()[0], static_cast<std::byte>(i));
  for (const auto& got : at_server().payloads) EXPECT_TRUE(got == payload);
}

// Server and client on threads of their own, as ranks of a test cluster are.
TEST_P(Conformance, EndsMayLiveOnDifferentThreads) {
  const auto payload = pattern(500'000, 13);
  int answers = 0;
  int sent = 0;
  std::atomic<bool> end_was_seen = false;
  EventLoop loop;
  std::thread client([&] {
    auto fabric = GetParam().name == std::string("ucx") ? GetParam().make() : nullptr;
    Recorder handler;
    handler.on_message = [&](Connection&, const Incoming&) { ++answers; };
    auto made = (fabric ? *fabric : *fabric_).connect(loop, listener_->address());
    ASSERT_TRUE(made.is_ok());
    auto connection = std::move(*made);
    connection->set_handler(&handler);
    for (int i = 0; i < 20; ++i) {
      connection->send(bytes_of("ping"), payload, [&](Status status) { sent += status ? 1 : 0; });
      EXPECT_TRUE(testing::run_until(loop, [&] { return answers == i + 1 && sent == i + 1; }));
    }
    connection.reset();
    // Until then its context may have something to send.
    EXPECT_TRUE(testing::run_until(loop, [&] { return end_was_seen.load(); }));
    fabric.reset();
  });
  const auto answer = [&] {
    if (at_server_.empty() || at_server().on_message) return;
    at_server().on_message = [](Connection& connection, const Incoming&) {
      connection.send(bytes_of("pong"));
    };
    for (std::size_t i = 0; i < at_server().frames.size(); ++i) server().send(bytes_of("pong"));
  };
  const bool ended = run_until([&] {
    answer();
    return !at_server_.empty() && at_server().ends.size() == 1;
  });
  end_was_seen = true;
  loop.wake();
  client.join();
  EXPECT_TRUE(ended);
  EXPECT_EQ(answers, 20);
  for (const auto& got : at_server().payloads) EXPECT_TRUE(got == payload);
}

}  // namespace
}  // namespace capstan::transport::testing
