// The parts of a client: addresses, the driver of its loop, its weights.

#include <atomic>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "capstan/client/connector.h"
#include "capstan/client/driver.h"
#include "capstan/client/weights_arena.h"
#include "capstan/user_error.h"

#include "support/eventually.h"

namespace capstan::client {
namespace {

TEST(Addresses, AreAHostAndAPort) {
  EXPECT_EQ(parse_address("127.0.0.1:7000").host, "127.0.0.1");
  EXPECT_EQ(parse_address("127.0.0.1:7000").port, 7000);
  EXPECT_EQ(parse_address("node-3.cluster:0").host, "node-3.cluster");
  EXPECT_EQ(parse_address("[::1]:65535").host, "::1");
  EXPECT_EQ(parse_address("[::1]:65535").port, 65535);
}

TEST(Addresses, ThatMakeNoSenseAreErrorsThatQuoteThem) {
  for (const auto* text :
       {"", "host", ":7000", "host:", "host:x", "host:70000", "host:-1", "host:7000x", "host: 7"}) {
    try {
      (void)parse_address(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("\"" + std::string(text) + "\""));
    }
  }
}

TEST(Addresses, OfThisHostAreKnown) {
  EXPECT_TRUE(is_this_host("127.0.0.1"));
  EXPECT_TRUE(is_this_host("127.9.9.9"));
  EXPECT_TRUE(is_this_host("localhost"));
  EXPECT_FALSE(is_this_host("192.0.2.1"));  // an address for documents only
  EXPECT_FALSE(is_this_host("no-such-host.invalid"));
}

TEST(Transports, HaveThreeNames) {
  EXPECT_EQ(parse_transport("auto"), TransportChoice::kAuto);
  EXPECT_EQ(parse_transport("local"), TransportChoice::kLocal);
  EXPECT_EQ(parse_transport("ucx"), TransportChoice::kUcx);
  EXPECT_THROW((void)parse_transport("tcp"), UserError);
}

TEST(Transports, LocalReachesOnlyThisHost) {
  transport::EventLoop loop;
  EXPECT_THROW((void)make_connector(TransportChoice::kLocal)(loop, "192.0.2.1:7000"), UserError);
}

TEST(Driver, RunsTimersWhileNoThreadWaits) {
  std::atomic<int> runs = 0;
  Driver driver;
  driver.with_lock([&] { driver.loop().call_at(SteadyClock::now(), [&] { ++runs; }); });
  EXPECT_TRUE(testing::eventually([&] { return runs == 1; }));
}

TEST(Driver, WaitsUntilReadyOrTheDeadline) {
  Driver driver;
  bool done = false;
  driver.with_lock([&] {
    driver.loop().call_at(SteadyClock::now() + std::chrono::milliseconds(20), [&] { done = true; });
  });
  EXPECT_TRUE(driver.run_until([&] { return done; }, SteadyClock::now() + testing::kTestTimeout));
  EXPECT_FALSE(driver.run_until([] { return false; }, SteadyClock::now() + std::chrono::milliseconds(10)));
  EXPECT_FALSE(driver.run_until([] { return false; }, TimePoint::min()));
}

TEST(Driver, WithAKeeperThatAlwaysRunsNeedsNoWaitingThread) {
  Driver driver(Driver::Keeper::kAlways);
  std::promise<std::thread::id> timer, posted;
  driver.with_lock([&] {
    driver.loop().call_at(SteadyClock::now() + std::chrono::milliseconds(5),
                          [&] { timer.set_value(std::this_thread::get_id()); });
  });
  driver.loop().post([&] { posted.set_value(std::this_thread::get_id()); });
  const auto keeper = posted.get_future().get();
  EXPECT_NE(keeper, std::this_thread::get_id());
  EXPECT_EQ(timer.get_future().get(), keeper);

  int runs = 0;  // under the lock
  for (int i = 0; i < 100; ++i) {
    driver.loop().post([&] { ++runs; });
    EXPECT_TRUE(driver.run_until([&] { return runs > i; },
                                 i % 2 == 0 ? TimePoint::max() : SteadyClock::now() + testing::kTestTimeout));
  }
  EXPECT_FALSE(driver.run_until([] { return false; }, SteadyClock::now() + std::chrono::milliseconds(10)));
}

// The keeper must not miss the request to end, whatever it does at that moment.
TEST(Driver, WithAKeeperThatAlwaysRunsEndsAtAnyTime) {
  for (int i = 0; i < 2000; ++i) {
    Driver driver(Driver::Keeper::kAlways);
    if (i % 2 == 0) driver.loop().post([] {});
  }
}

TEST(Driver, AfterTheKeeperOnlyTheCallerDrives) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  std::thread([] {}).join();  // a sanitizer may start a thread of its own with the first one
  const auto before = threads();
  Driver driver;
  EXPECT_EQ(threads(), before + 1);
  driver.end_keeper();
  driver.end_keeper();                                                    // twice does no harm
  EXPECT_TRUE(testing::eventually([&] { return threads() == before; }));  // the kernel may take a moment
  std::optional<std::thread::id> ran_on;
  driver.loop().post([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_TRUE(
      driver.run_until([&] { return ran_on.has_value(); }, SteadyClock::now() + testing::kTestTimeout));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(WeightsArena, LaysServersSideBySide) {
  constexpr std::uint64_t kPage = 1024;  // floats
  auto arena = WeightsArena::of_server_segments(2 * kPage + 10);
  EXPECT_EQ(arena->segment(), nullptr);
  std::vector<transport::Segment> servers;
  const Range ranges[] = {{0, kPage}, {kPage, 2 * kPage + 10}};
  for (const auto& range : ranges) {
    auto segment =
        transport::Segment::create(range.size() * sizeof(float), transport::Segment::PeerMay::kRead);
    for (std::size_t i = 0; i < range.size(); ++i) segment.floats()[i] = static_cast<float>(range.begin + i);
    auto mapped = segment.map_again();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(arena->lay(range, std::move(*mapped)));
    servers.push_back(std::move(segment));
  }
  for (std::size_t i = 0; i < arena->floats().size(); ++i)
    ASSERT_EQ(arena->floats()[i], static_cast<float>(i));
  servers[1].floats()[3] = -1;  // what the server writes is seen here
  EXPECT_EQ(arena->floats()[kPage + 3], -1);
}

TEST(WeightsArena, RefusesASegmentThatIsNotTheShard) {
  auto arena = WeightsArena::of_server_segments(2048);
  auto segment = transport::Segment::create(100, transport::Segment::PeerMay::kRead);
  EXPECT_EQ(arena->lay({0, 1024}, std::move(*segment.map_again())).code(), StatusCode::kMalformed);
  EXPECT_TRUE(arena->lay({0, 0}, std::move(*segment.map_again())));  // a server without a share
}

TEST(WeightsArena, ItsOwnSegmentMayBeWrittenByServers) {
  const auto arena = WeightsArena::own_segment(100);
  ASSERT_NE(arena->segment(), nullptr);
  const auto mapped = arena->segment()->map_again();
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->is_writable());
  mapped->floats()[7] = 3;
  EXPECT_EQ(arena->floats()[7], 3);
  EXPECT_EQ(arena->receivable({5, 9}).size(), 4u);
}

}  // namespace
}  // namespace capstan::client
