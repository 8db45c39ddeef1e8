#include "capstan/transport/faulty/faulty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/random.h"
#include "capstan/transport/loopback/loopback.h"
#include "fabric.h"
#include "support/fake_clock.h"

namespace capstan::transport::testing {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// More than any delay of these tests, on the fake clock.
constexpr auto kLong = 100ms;

// A faulty client, and a server that records what arrives.
class Faulty : public ::testing::Test {
 protected:
  void connect(const faulty::Faults& faults) {
    listener_ = network_.listen(time_.loop(), "server", [this](std::unique_ptr<Connection> connection) {
      server_ = std::move(connection);
      server_->set_handler(&at_server_);
    });
    client_ = faulty::wrap(time_.loop(), std::move(*network_.connect(time_.loop(), "server")), faults);
    client_->set_handler(&at_client_);
  }
  void send_numbers(int count) {
    for (int i = 0; i < count; ++i) client_->send(bytes_of(std::to_string(i)));
  }

  capstan::testing::FakeTime time_;
  loopback::Network network_{true};
  Recorder at_server_;
  Recorder at_client_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> server_;
  std::unique_ptr<Connection> client_;
};

// The plan by plain arithmetic: five numbers per message, in the order that faulty.h names.
std::vector<std::string> replay(const faulty::Faults& faults, int count) {
  Random random(faults.seed);
  std::vector<std::string> out;
  std::vector<std::string> overtaken;
  for (int i = 0; i < count; ++i) {
    double draws[5];
    for (double& draw : draws) draw = random.uniform();
    if (draws[0] < faults.drop) continue;
    const std::vector<std::string> copies(draws[1] < faults.duplicate ? 2 : 1, std::to_string(i));
    if (draws[2] < faults.reorder && overtaken.empty()) {
      overtaken = copies;
      continue;
    }
    out.insert(out.end(), copies.begin(), copies.end());
    out.insert(out.end(), overtaken.begin(), overtaken.end());
    overtaken.clear();
  }
  out.insert(out.end(), overtaken.begin(), overtaken.end());
  return out;
}

TEST_F(Faulty, ArrivalsAreWhatTheSeedSays) {
  const faulty::Faults faults{
      .seed = 42, .drop = 0.1, .duplicate = 0.2, .reorder = 0.15, .delay = 0.05, .max_delay = 1ms};
  connect(faults);
  send_numbers(1000);
  const auto expected = replay(faults, 1000);
  time_.pass(kLong);
  EXPECT_EQ(at_server_.frames, expected);
}

TEST_F(Faulty, EachFaultAloneIsWhatTheSeedSays) {
  const auto plan = [](double drop, double duplicate, double reorder, double delay) {
    return faulty::Faults{.seed = 7,
                          .drop = drop,
                          .duplicate = duplicate,
                          .reorder = reorder,
                          .delay = delay,
                          .max_delay = 1ms};
  };
  for (const auto& faults :
       {plan(0.3, 0, 0, 0), plan(0, 0.3, 0, 0), plan(0, 0, 0.3, 0), plan(0, 0, 0, 0.3)}) {
    listener_.reset();
    at_server_.frames.clear();
    connect(faults);
    send_numbers(200);
    const auto expected = replay(faults, 200);
    time_.pass(kLong);
    EXPECT_EQ(at_server_.frames, expected);
  }
}

TEST_F(Faulty, DropRateIsNearTheAskedOne) {
  connect({.seed = 3, .drop = 0.25});
  send_numbers(4000);
  time_.pass(kLong);
  EXPECT_NEAR(static_cast<double>(at_server_.frames.size()), 3000.0, 150.0);
}

TEST_F(Faulty, FaultsAreCounted) {
  faulty::Faults faults{.seed = 3, .drop = 0.25, .cut_after = 40};
  faults.count = std::make_shared<std::atomic<std::uint64_t>>(0);
  connect(faults);
  send_numbers(40);
  time_.pass(kLong);
  ASSERT_EQ(at_client_.ends.size(), 1U);
  const auto dropped = 40 - at_server_.frames.size();
  EXPECT_GT(dropped, 0u);
  // The last message may be both, dropped and the one at which the connection is cut.
  const bool both = std::ranges::find(at_server_.frames, "39") == at_server_.frames.end();
  EXPECT_EQ(*faults.count, dropped + (both ? 0 : 1));
}

TEST_F(Faulty, SentRunsOnceForDroppedAndDoubledPayloads) {
  connect({.seed = 11, .drop = 0.3, .duplicate = 0.4, .reorder = 0.2, .delay = 0.2, .max_delay = 1ms});
  const auto payload = pattern(10'000, 1);
  std::vector<int> runs(200);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    client_->send(bytes_of("p"), payload, [&runs, i](Status status) { runs[i] += status ? 1 : 100; });
  }
  time_.pass(kLong);
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), 200);
  for (const auto& got : at_server_.payloads) EXPECT_TRUE(got == payload);
}

TEST_F(Faulty, CutEndsBothSidesAfterThatManyMessages) {
  connect({.seed = 1, .cut_after = 5});
  const auto payload = pattern(1000, 1);
  int sent = 0;
  for (int i = 0; i < 10; ++i) client_->send(bytes_of(std::to_string(i)), payload, [&](Status) { ++sent; });
  EXPECT_FALSE(client_->is_open());
  time_.pass(kLong);
  ASSERT_EQ(at_client_.ends.size(), 1U);
  ASSERT_EQ(at_server_.ends.size(), 1U);
  EXPECT_EQ(at_client_.ends[0].code(), StatusCode::kClosed);
  EXPECT_EQ(at_client_.ends[0].message(), "cut by the fault plan");
  EXPECT_LE(at_server_.frames.size(), 5U);
  EXPECT_EQ(sent, 10);
}

TEST_F(Faulty, FramesBeforeTheCutArrive) {
  connect({.seed = 1, .cut_after = 3});
  send_numbers(10);
  time_.settle();
  ASSERT_EQ(at_server_.ends.size(), 1U);
  EXPECT_THAT(at_server_.frames, ElementsAre("0", "1", "2"));
}

TEST_F(Faulty, SegmentsAlwaysArriveOnceAndInOrder) {
  connect({.seed = 9, .drop = 0.9, .duplicate = 0.9, .reorder = 0.9, .delay = 0.5, .max_delay = 1ms});
  const Segment segment = Segment::create(4096, Segment::PeerMay::kRead);
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) {
    expected.push_back(std::to_string(i));
    client_->send(bytes_of(expected.back()), segment);
  }
  time_.pass(kLong);
  EXPECT_EQ(at_server_.frames, expected);
  EXPECT_EQ(at_server_.segments.size(), 50U);
}

TEST_F(Faulty, LateFramesArriveThoughTheirSenderHasClosed) {
  connect({.seed = 1, .delay = 1, .max_delay = 10s});
  send_numbers(3);
  time_.settle();
  EXPECT_TRUE(at_server_.frames.empty());
  client_->close();
  time_.settle();
  ASSERT_EQ(at_server_.ends.size(), 1U);
  EXPECT_THAT(at_server_.frames, ElementsAre("0", "1", "2"));
}

TEST_F(Faulty, CloseRunsWhatIsHeldBack) {
  connect({.seed = 1, .delay = 1, .max_delay = 10s});
  const auto payload = pattern(1000, 1);
  int failed = 0;
  for (int i = 0; i < 5; ++i)
    client_->send(bytes_of("x"), payload, [&](Status status) { failed += status ? 0 : 1; });
  time_.settle();
  client_->close();
  EXPECT_EQ(failed, 5);
}

}  // namespace
}  // namespace capstan::transport::testing
