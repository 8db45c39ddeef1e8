#include "capstan/transport/event_loop.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "fabric.h"

namespace capstan::transport::testing {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

UniqueFd ready_fd() {
  return UniqueFd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
}

TEST(EventLoop, TimersRunInOrderOfTimeThenOfCall) {
  EventLoop loop;
  std::vector<int> order;
  const TimePoint now = SteadyClock::now();
  loop.call_at(now + 3ms, [&] { order.push_back(4); });
  loop.call_at(now + 1ms, [&] { order.push_back(2); });
  loop.call_at(now + 1ms, [&] { order.push_back(3); });
  loop.call_at(now - 1ms, [&] { order.push_back(1); });
  ASSERT_TRUE(run_until(loop, [&] { return order.size() == 4; }));
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST(EventLoop, CancelledTimerDoesNotRunEvenWhenDueInTheSameRound) {
  EventLoop loop;
  std::vector<int> order;
  const TimePoint past = SteadyClock::now() - 1ms;
  EventLoop::TimerId second = 0;
  const auto first = loop.call_at(past, [&] {
    order.push_back(1);
    loop.cancel(second);
  });
  second = loop.call_at(past, [&] { order.push_back(2); });
  loop.call_at(past, [&] { order.push_back(3); });
  drain(loop);
  EXPECT_THAT(order, ElementsAre(1, 3));
  loop.cancel(first);  // ran already: nothing happens
}

TEST(EventLoop, TimerThatStartsAnotherInThePastDoesNotStarveTheLoop) {
  EventLoop loop;
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    loop.call_at(SteadyClock::now() - 1s, again);
  };
  again();
  EXPECT_TRUE(loop.run_once(SteadyClock::now()));
  EXPECT_EQ(runs, 2);
}

TEST(EventLoop, PostFromAnotherThreadEndsASleep) {
  EventLoop loop;
  std::atomic<int> done = 0;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      loop.post([&] {
        ++done;
        done.notify_all();
      });
      for (int seen = done; seen <= i; seen = done) done.wait(seen);
    }
  });
  // Each sleep is longer than the test may take: only a wake ends it in time.
  const TimePoint deadline = SteadyClock::now() + kTestTimeout;
  while (done < 100 && SteadyClock::now() < deadline) loop.run_once(deadline);
  EXPECT_EQ(done, 100);
  done = 100;  // lets the thread end, whatever happened
  done.notify_all();
  other.join();
}

TEST(EventLoop, WakeBeforeTheSleepIsNotLost) {
  EventLoop loop;
  loop.wake();
  const TimePoint deadline = SteadyClock::now() + kTestTimeout;
  loop.run_once(deadline);
  EXPECT_LT(SteadyClock::now(), deadline);
}

TEST(EventLoop, PostedFromWithinRunsInTheNextRound) {
  EventLoop loop;
  std::vector<int> order;
  loop.post([&] {
    order.push_back(1);
    loop.post([&] { order.push_back(3); });
  });
  loop.post([&] { order.push_back(2); });
  EXPECT_TRUE(loop.run_once(SteadyClock::now()));
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_TRUE(loop.run_once(SteadyClock::now() + kTestTimeout));
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(EventLoop, UnwatchWithinABatchHoldsForEventsAlreadyFetched) {
  EventLoop loop;
  UniqueFd one = ready_fd();
  UniqueFd two = ready_fd();
  int runs = 0;
  // Both are ready, so one epoll_wait fetches both; whichever runs first silences the other and itself.
  const auto both = [&](std::uint32_t) {
    ++runs;
    loop.unwatch(one.get());
    loop.unwatch(two.get());
  };
  loop.watch(one.get(), EPOLLIN, both);
  loop.watch(two.get(), EPOLLIN, both);
  EXPECT_TRUE(loop.run_once(SteadyClock::now() + kTestTimeout));
  EXPECT_FALSE(loop.run_once(SteadyClock::now()));
  EXPECT_EQ(runs, 1);
}

TEST(EventLoop, NewWatchOfAReusedDescriptorDoesNotGetTheOldOnesEvent) {
  EventLoop loop;
  UniqueFd one = ready_fd();
  UniqueFd two = ready_fd();
  int old_runs = 0;
  int new_runs = 0;
  const auto replace = [&](std::uint32_t) {
    ++old_runs;
    for (auto* fd : {&one, &two}) {
      loop.unwatch(fd->get());
      fd->reset();
      *fd = UniqueFd(::eventfd(0, EFD_CLOEXEC));  // takes the number that was just freed; never ready
      loop.watch(fd->get(), EPOLLIN, [&](std::uint32_t) { ++new_runs; });
    }
  };
  loop.watch(one.get(), EPOLLIN, replace);
  loop.watch(two.get(), EPOLLIN, replace);
  drain(loop);
  EXPECT_EQ(old_runs, 1);
  EXPECT_EQ(new_runs, 0);
}

TEST(EventLoop, ChangeStopsAndResumesEvents) {
  EventLoop loop;
  UniqueFd fd = ready_fd();
  int runs = 0;
  loop.watch(fd.get(), EPOLLIN, [&](std::uint32_t) { ++runs; });
  loop.change(fd.get(), 0);
  EXPECT_FALSE(loop.run_once(SteadyClock::now()));
  loop.change(fd.get(), EPOLLIN);
  EXPECT_TRUE(loop.run_once(SteadyClock::now() + kTestTimeout));
  EXPECT_EQ(runs, 1);
  loop.unwatch(fd.get());
}

TEST(EventLoop, PollerIsAskedAgainInsteadOfSleepingUntilItIsArmed) {
  // Once it is armed, there is something to do, so that nothing sleeps.
  struct Stubborn : Poller {
    explicit Stubborn(EventLoop& event_loop) : loop(event_loop) {}
    EventLoop& loop;
    int refusals = 5;
    int progressed = 0;
    bool progress() override {
      ++progressed;
      return false;
    }
    bool arm() override {
      if (refusals-- > 0) return false;
      loop.post([] {});
      return true;
    }
  };
  EventLoop loop;
  Stubborn poller(loop);
  const UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
  loop.add_poller(&poller, fd.get());
  EXPECT_TRUE(loop.run_once(SteadyClock::now() + kTestTimeout));
  EXPECT_GE(poller.progressed, 6);
  EXPECT_LT(poller.refusals, 0);
  loop.remove_poller(&poller, fd.get());
}

}  // namespace
}  // namespace capstan::transport::testing
