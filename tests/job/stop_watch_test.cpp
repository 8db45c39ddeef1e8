#include "capstan/job/stop_watch.h"

#include <gtest/gtest.h>

#include "job/fakes.h"

namespace capstan::job {
namespace {

using testing::eventually;

class StopWatchTest : public ::testing::Test {
 protected:
  // Every request so far has been seen.
  bool is_seen() {
    const auto polls = stop_.polls();
    return eventually([&] { return stop_.polls() > polls + 1; });
  }

  RecordedEvents events_;
  FakeStop stop_;
  std::atomic<bool> ended_ = false;
  const Environment environment_{.events = events_, .stop = stop_, .end_at_once = [this] { ended_ = true; }};
};

TEST_F(StopWatchTest, EndsTheProcessAtOnceAfterMoreRequestsThanAreHandled) {
  const StopWatch watch(environment_, 0, 1);
  ASSERT_TRUE(is_seen());
  EXPECT_FALSE(watch.asked);
  stop_.request();
  ASSERT_TRUE(is_seen());
  EXPECT_TRUE(watch.asked);
  EXPECT_FALSE(ended_);
  stop_.request();
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(StopWatchTest, TrainingAllowsOneMoreRequest) {
  StopWatch watch(environment_, 0, 0);
  watch.training = true;
  stop_.request();
  ASSERT_TRUE(is_seen());
  EXPECT_FALSE(ended_);
  watch.training = false;
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
}

TEST_F(StopWatchTest, IgnoresRequestsThatAreHandledAlready) {
  stop_.request();
  const StopWatch watch(environment_, 1, 0);
  ASSERT_TRUE(is_seen());
  EXPECT_FALSE(watch.asked);
  EXPECT_FALSE(ended_);
  stop_.request();
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
  EXPECT_TRUE(watch.asked);
}

TEST_F(StopWatchTest, WithoutAWayToEndOnlyTheFlagIsSet) {
  const StopWatch watch({.events = events_, .stop = stop_}, 0, 0);
  stop_.request();
  EXPECT_TRUE(eventually([&] { return watch.asked.load(); }));
  EXPECT_FALSE(ended_);
}

}  // namespace
}  // namespace capstan::job
