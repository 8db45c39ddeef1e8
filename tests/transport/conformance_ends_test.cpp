#include <map>

#include <gmock/gmock.h>

#include "capstan/user_error.h"

#include "conformance.h"

// How connections begin and end; conformance_test.cpp has what goes over them, and the list of transports.
namespace capstan::transport::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(Conformance, SentRunsOnceAlsoWhenTheConnectionCloses) {
  connect_pair();
  at_server().on_place = [](Connection&, Bytes, std::size_t) { return Placement::discard(); };
  const auto payload = pattern(20 << 20, 6);
  std::map<int, int> runs;
  int failed = 0;
  for (int i = 0; i < 5; ++i) {
    client_->send(bytes_of("data"), payload, [&, i](Status status) {
      ++runs[i];
      failed += status ? 0 : 1;
    });
  }
  client_->close();
  EXPECT_EQ(runs.size(), 5U) << "all are back when close() returns";
  client_->send(bytes_of("too late"), payload, [&](Status status) { runs[5] += status ? 100 : 1; });
  settle();
  EXPECT_EQ(runs.size(), 6U);
  for (const auto& [i, count] : runs) EXPECT_EQ(count, 1) << i;
  EXPECT_GE(failed, 1);
  EXPECT_TRUE(at_client_.ends.empty());
}

TEST_P(Conformance, SentRunsOnceWhenThePeerCloses) {
  connect_pair();
  at_server().on_place = [&](Connection& connection, Bytes, std::size_t) {
    connection.close();
    return Placement::discard();
  };
  const auto payload = pattern(20 << 20, 6);
  std::map<int, int> runs;
  for (int i = 0; i < 3; ++i) client_->send(bytes_of("data"), payload, [&, i](Status) { ++runs[i]; });
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  settle();
  EXPECT_EQ(runs.size(), 3U);
  for (const auto& [i, count] : runs) EXPECT_EQ(count, 1) << i;
  EXPECT_EQ(at_client_.ends.size(), 1U);
  EXPECT_TRUE(at_server().frames.empty());
  EXPECT_TRUE(at_server().ends.empty());
}

TEST_P(Conformance, FramesSentBeforeCloseArriveBeforeTheEnd) {
  connect_pair();
  for (int i = 0; i < 10; ++i) client_->send(bytes_of(std::to_string(i)));
  client_->close();
  EXPECT_FALSE(client_->is_open());
  client_->send(bytes_of("ignored"));
  ASSERT_TRUE(run_until([&] { return at_server().ends.size() == 1; }));
  EXPECT_THAT(at_server().frames, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_EQ(at_server().ends[0].code(), StatusCode::kClosed);
  settle();
  EXPECT_EQ(at_server().ends.size(), 1U);
  EXPECT_TRUE(at_client_.ends.empty()) << "not after an own close";
  EXPECT_FALSE(server().is_open());
}

TEST_P(Conformance, DestroyingOneEndClosesTheOther) {
  connect_pair();
  servers_.clear();
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  client_->send(bytes_of("into the void"));
  settle();
  EXPECT_EQ(at_client_.ends.size(), 1U);
}

TEST_P(Conformance, HandlerMayCloseWithinOnFrame) {
  connect_pair();
  at_server().on_message = [](Connection& connection, const Incoming&) { connection.close(); };
  for (int i = 0; i < 5; ++i) client_->send(bytes_of("x"));
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  EXPECT_EQ(at_server().frames.size(), 1U);
  EXPECT_TRUE(at_server().ends.empty());
}

TEST_P(Conformance, HandlerMayDestroyWithinOnFrame) {
  connect_pair();
  at_server().on_message = [&](Connection&, const Incoming&) { servers_.clear(); };
  for (int i = 0; i < 5; ++i) client_->send(bytes_of("x"));
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  EXPECT_EQ(at_server().frames.size(), 1U);
  EXPECT_TRUE(at_server().ends.empty());
}

TEST_P(Conformance, HandlerMayDestroyWithinPlace) {
  connect_pair();
  at_server().on_place = [&](Connection&, Bytes, std::size_t) {
    servers_.clear();
    return Placement::discard();
  };
  const auto payload = pattern(2 << 20, 8);
  int sent = 0;
  client_->send(bytes_of("x"), payload, [&](Status) { ++sent; });
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  EXPECT_EQ(sent, 1);
  EXPECT_TRUE(at_server().frames.empty());
}

TEST_P(Conformance, HandlerMayDestroyWithinOnClosedAndSent) {
  connect_pair();
  at_server().on_end = [&](Connection&) { servers_.clear(); };
  at_server().on_place = [](Connection&, Bytes, std::size_t) { return Placement::discard(); };
  const auto payload = pattern(100, 9);
  bool sent = false;
  client_->send(bytes_of("x"), payload, [&](Status) {
    sent = true;
    client_.reset();
  });
  ASSERT_TRUE(run_until([&] { return sent && servers_.empty(); }));
  EXPECT_EQ(at_server().ends.size(), 1U);
}

TEST_P(Conformance, ConnectingWithoutAListenerFails) {
  const std::string address = listener_->address();
  listener_.reset();
  auto made = fabric_->connect(loop_, address);
  Status why = made.status();
  if (made) {
    (*made)->set_handler(&at_client_);
    int sent = 0;
    const auto payload = pattern(1 << 20, 11);
    (*made)->send(bytes_of("x"), payload, [&](Status) { ++sent; });
    ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
    why = at_client_.ends[0];
    EXPECT_EQ(sent, 1);
  }
  EXPECT_EQ(why.code(), StatusCode::kUnavailable);
  EXPECT_THAT(why.message(), HasSubstr(address));
}

TEST_P(Conformance, AddressInUseIsAUserError) {
  try {
    auto second = fabric_->listen_at(loop_, listener_->address(), [](std::unique_ptr<Connection>) {});
    FAIL() << "two listeners on " << listener_->address();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in use"));
  }
}

TEST_P(Conformance, ListenerMayGoWhileConnectionsStay) {
  connect_pair();
  listener_.reset();
  client_->send(bytes_of("still here"));
  ASSERT_TRUE(run_until([&] { return at_server().frames.size() == 1; }));
}

TEST_P(Conformance, PeerThatTakesNothingEndsTheConnectionAtTheBound) {
  set_handlers_ = false;  // the server reads nothing
  client_ = connect(&at_client_);
  const std::string frame(50'000, 'x');
  client_->send(bytes_of(frame));
  ASSERT_TRUE(run_until([&] { return servers_.size() == 1; }));
  for (int i = 0; i < 20'000 && client_->is_open(); ++i) client_->send(bytes_of(frame));
  ASSERT_TRUE(run_until([&] { return at_client_.ends.size() == 1; }));
  EXPECT_EQ(at_client_.ends[0].code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace capstan::transport::testing
