#include "capstan/checkpoint/background.h"

#include <future>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "checkpoint/mailbox.h"
#include "support/eventually.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::Mailbox;
using ::testing::ElementsAre;

TEST(Background, RunsTasksInOrderOnItsOwnThread) {
  Mailbox mailbox;
  Background background(mailbox.deliverer());
  std::vector<int> ran, done;
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i) {
    background.post(
        [&, i] {
          EXPECT_NE(std::this_thread::get_id(), here);
          ran.push_back(i);
        },
        [&, i](const std::string& error) {
          EXPECT_EQ(error, "");
          EXPECT_EQ(std::this_thread::get_id(), here);
          done.push_back(i);
        });
  }
  ASSERT_TRUE(mailbox.run_until([&] { return done.size() == 100; }));
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(done, expected);
}

TEST(Background, DeliversExceptionsAndContinues) {
  Mailbox mailbox;
  Background background(mailbox.deliverer());
  std::vector<std::string> errors;
  const auto done = [&](const std::string& error) { errors.push_back(error); };
  background.post([] { throw UserError("the disk is full"); }, done);
  background.post([] { throw std::bad_alloc(); }, done);
  background.post([] {}, done);
  ASSERT_TRUE(mailbox.run_until([&] { return errors.size() == 3; }));
  EXPECT_THAT(errors, ElementsAre("the disk is full", std::bad_alloc().what(), ""));
}

// A task's captures, such as a copy of the weights, are destroyed before its end is delivered.
TEST(Background, DestroysATaskBeforeItsEndIsDelivered) {
  Mailbox mailbox;
  const auto held = std::make_shared<int>(1);
  Background background([&](std::function<void()> function) {
    EXPECT_EQ(held.use_count(), 1);
    mailbox.deliver(std::move(function));
  });
  bool done = false;
  // An initialised capture: that of a constant would be copied, not moved, and live on in this thread.
  background.post([kept = held] {}, [&](const std::string&) { done = true; });
  ASSERT_TRUE(mailbox.run_until([&] { return done; }));
}

TEST(Background, EndsAfterTheRunningTaskAndDropsTheOthers) {
  Mailbox mailbox;
  std::promise<void> begun, go;
  auto released = go.get_future();
  bool finished = false, second = false, heard = false;
  std::optional<Background> background(mailbox.deliverer());
  background->post(
      [&] {
        begun.set_value();
        finished = released.wait_for(capstan::testing::kTestTimeout) == std::future_status::ready;
      },
      [&](const std::string&) { heard = true; });
  // The destructor drops this task while the first one runs, which releases the first one.
  background->post(
      [&, dropped = std::shared_ptr<void>(nullptr, [&](void*) { go.set_value(); })] { second = true; },
      [&](const std::string&) { heard = true; });
  begun.get_future().wait();
  background.reset();
  EXPECT_TRUE(finished);
  EXPECT_FALSE(second);
  mailbox.run_waiting();
  EXPECT_FALSE(heard) << "the receiver may be destroyed too";
}

TEST(Background, EndsWithoutATask) {
  int delivered = 0;
  for (int i = 0; i < 50; ++i) Background background([&](const std::function<void()>&) { ++delivered; });
  EXPECT_EQ(delivered, 0);
}

}  // namespace
}  // namespace capstan::checkpoint
