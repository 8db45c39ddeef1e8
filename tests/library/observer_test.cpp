// capstan::Observer with a real server.

#include "capstan/observer.h"

#include <optional>

#include <gmock/gmock.h>

#include "capstan/user_error.h"
#include "capstan/worker.h"

#include "library/serving.h"

namespace capstan::testing {
namespace {

using ::testing::Each;

TEST(Observer, SeesTheStatusAndTheWeightsAndStopsTheJob) {
  Serving serving({"--workers=1"});
  auto joined = Observer::join(serving.options());
  ASSERT_TRUE(joined) << joined.status().message();
  std::optional<Observer> observer(std::move(*joined));
  EXPECT_EQ(observer->servers(), 1u);
  EXPECT_EQ(observer->weights().status().code(), StatusCode::kUnavailable);

  const FlatLayout layout({{"w", {16}}});
  auto worker = Worker::join(serving.options(), layout, std::vector<float>(16, 8));
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE(worker->pull());
  std::ranges::fill(worker->gradients(), 4.0f);
  ASSERT_TRUE(worker->push_pull({.samples = 3, .loss = 0.25f}));
  ASSERT_TRUE(worker->push_pull({.samples = 2, .loss = 0.5f}));

  const auto status = observer->status();
  ASSERT_TRUE(status) << status.status().message();
  EXPECT_TRUE(status->started);
  EXPECT_FALSE(status->finished);
  EXPECT_EQ(status->version, 2u);
  ASSERT_EQ(status->workers.size(), 1u);
  EXPECT_EQ(status->workers[0].state, WorkerState::kLive);
  EXPECT_EQ(status->workers[0].pushes, 2u);
  EXPECT_EQ(status->workers[0].samples, 5u);
  EXPECT_EQ(status->workers[0].loss, 0.5f);

  const auto snapshot = observer->weights(2);
  ASSERT_TRUE(snapshot) << snapshot.status().message();
  EXPECT_EQ(snapshot->version, 2u);
  EXPECT_EQ(snapshot->layout.difference(layout), "");
  EXPECT_EQ(snapshot->weights.size(), 16u);
  EXPECT_THAT(snapshot->weights, Each(8 - 2 * 0.5f * 4));

  EXPECT_TRUE(observer->stop("enough"));
  const auto last = worker->push_pull();
  ASSERT_TRUE(last) << last.status().message();
  EXPECT_TRUE(last->stop);
  worker->leave();
  // The servers of an ended job wait for their observers.
  const auto end = observer->status();
  EXPECT_TRUE(end && end->finished);
  EXPECT_EQ(observer->weights()->version, 2u);  // a push after the stop is dropped
  observer.reset();
  EXPECT_EQ(serving.program().exit_code(), 0) << serving.program().errors();
}

TEST(Observer, TheEndOfTheJobIsAStatus) {
  Serving serving({"--workers=1"});
  auto observer = Observer::join(serving.options());
  ASSERT_TRUE(observer) << observer.status().message();
  serving.program().child().signal(SIGINT);
  serving.program().exit_code();
  EXPECT_FALSE(observer->status());
  EXPECT_FALSE(observer->stop("too late"));
}

TEST(Observer, WrongArgumentsThrow) {
  EXPECT_THROW((void)Observer::join({.servers = {}, .token = kToken}), UserError);
  EXPECT_THROW((void)Observer::join({.servers = {"127.0.0.1:1"}, .token = "short"}), UserError);
}

}  // namespace
}  // namespace capstan::testing
