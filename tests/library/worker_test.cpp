// capstan::Worker with a real server: what it computes, what it refuses, and what it returns when the job
// fails.

#include "capstan/worker.h"

#include <thread>

#include <gmock/gmock.h>

#include "capstan/user_error.h"
#include "capstan/version.h"
#include "capstan/wire/messages.h"

#include "library/serving.h"

namespace capstan::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const FlatLayout& two_tensors() {
  static const FlatLayout layout({{"a", {2, 3}}, {"b", {5}}});
  return layout;
}

std::vector<float> filled(const FlatLayout& layout, float value) {
  return std::vector<float>(layout.size(), value);
}

// Each worker pushes rank + 1 in "a" and 10 · (rank + 1) in "b" until the job ends; returns its weights.
std::pair<std::vector<float>, std::vector<float>> push_constants(const JoinOptions& options) {
  auto worker = Worker::join(options, two_tensors(), filled(two_tensors(), 100));
  EXPECT_TRUE(worker) << worker.status().message();
  if (!worker) return {};
  auto update = worker->pull();
  while (update && !update->stop) {
    const auto value = static_cast<float>(worker->rank() + 1);
    std::ranges::fill(worker->gradients("a"), value);
    std::ranges::fill(worker->gradients(1), 10 * value);
    update = worker->push_pull({.samples = 1});
    EXPECT_TRUE(!update || update->version == worker->version());
  }
  EXPECT_TRUE(update) << update.status().message();
  worker->leave();
  const auto a = worker->weights(0), b = worker->weights("b");
  return {{a.begin(), a.end()}, {b.begin(), b.end()}};
}

// sync: an update has the mean of the workers' gradients, 1.5 and 15; five of them with the learning rate
// 0.5.
TEST(Worker, TwoWorkersTrainOverEveryTransport) {
  for (const auto& [name, transport] :
       {std::pair("auto", Transport::kAuto), {"local", Transport::kLocal}, {"ucx", Transport::kUcx}}) {
    Serving serving({"--workers=2", "--max-steps=5", std::string("--transport=") + name});
    auto options = serving.options();
    options.transport = transport;
    std::pair<std::vector<float>, std::vector<float>> other;
    std::thread second([&] { other = push_constants(options); });
    const auto [a, b] = push_constants(options);
    second.join();
    EXPECT_EQ(a, std::vector<float>(6, 100 - 5 * 0.5f * 1.5f)) << name;
    EXPECT_EQ(b, std::vector<float>(5, 100 - 5 * 0.5f * 15)) << name;
    EXPECT_EQ(other.first, a);
    EXPECT_EQ(serving.program().exit_code(), 0) << serving.program().errors();
  }
}

TEST(Worker, KnowsItsJob) {
  Serving serving({"--workers=1", "--strategy=ssp:3", "--max-steps=1"});
  auto options = serving.options();
  options.rank = 0;
  auto joined = Worker::join(options, two_tensors(), filled(two_tensors(), 1));
  ASSERT_TRUE(joined) << joined.status().message();
  auto worker = std::move(*joined);
  EXPECT_EQ(worker.rank(), 0u);
  EXPECT_EQ(worker.workers(), 1u);
  EXPECT_EQ(worker.servers(), 1u);
  EXPECT_EQ(worker.strategy(), "ssp:3");
  EXPECT_EQ(worker.transport(), "local");
  EXPECT_EQ(worker.layout().difference(two_tensors()), "");
  const auto first = worker.pull();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->version, 0u);
  EXPECT_FALSE(first->stop);
  EXPECT_THAT(worker.weights(), Each(1.0f));
  const auto second = worker.push_pull();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->version, 1u);
  EXPECT_EQ(second->applied, 1u);
  EXPECT_TRUE(second->stop);
  worker.leave();
}

// The layout puts "a" at 0 and "b" at 16, after a gap.
TEST(Worker, TensorsArePartsOfTheFlatArrays) {
  Serving serving({"--workers=1"});
  auto worker = Worker::join(serving.options(), two_tensors(), filled(two_tensors(), 0));
  ASSERT_TRUE(worker) << worker.status().message();
  EXPECT_EQ(worker->gradients().size(), 32u);
  EXPECT_EQ(worker->weights().size(), 32u);
  EXPECT_EQ(worker->gradients(0).data(), worker->gradients().data());
  EXPECT_EQ(worker->gradients("b").data(), worker->gradients().data() + 16);
  EXPECT_EQ(worker->gradients("b").size(), 5u);
  EXPECT_EQ(worker->weights("a").size(), 6u);
  EXPECT_EQ(worker->weights(1).data(), worker->weights().data() + 16);
  EXPECT_THROW((void)worker->weights("c"), UserError);
  EXPECT_THROW((void)worker->gradients(2), UserError);
  worker->leave();
  serving.program().child().signal(SIGINT);
}

// The one line of a UserError; empty if there is none.
std::string complaint(const JoinOptions& options, const FlatLayout& layout, std::size_t initial) {
  try {
    (void)Worker::join(options, layout, std::vector<float>(initial));
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(Worker, WrongArgumentsThrowBeforeTheNetworkIsUsed) {
  const JoinOptions good{.servers = {"127.0.0.1:1"}, .token = kToken};
  auto bad = good;
  bad.servers.clear();
  EXPECT_THAT(complaint(bad, two_tensors(), 32), HasSubstr("JoinOptions::servers is empty"));
  bad.servers = {"127.0.0.1:1", "nonsense"};
  EXPECT_THAT(complaint(bad, two_tensors(), 32), HasSubstr("\"nonsense\" is not an address"));
  bad = good;
  bad.token = "12";
  EXPECT_THAT(complaint(bad, two_tensors(), 32), HasSubstr("JoinOptions::token: a job token is 64"));
  bad.token.clear();
  EXPECT_THAT(complaint(bad, two_tensors(), 32), HasSubstr("no job token: set JoinOptions::token"));
  bad.token_file = "/no/such/file";
  EXPECT_THAT(complaint(bad, two_tensors(), 32), HasSubstr("/no/such/file"));
  EXPECT_THAT(complaint(good, two_tensors(), 11), HasSubstr("have 11 elements; the layout has 32"));
  EXPECT_THAT(complaint(good, FlatLayout(), 0), HasSubstr("no tensors"));
  EXPECT_THAT(complaint(good, FlatLayout({{"w", {2, -3}}}), 0), HasSubstr("tensor w has an invalid shape"));
}

TEST(Worker, AJobThatCannotBeJoinedIsAStatus) {
  Serving serving({"--workers=1"});
  auto options = serving.options();
  options.token = kOtherToken;
  EXPECT_EQ(Worker::join(options, two_tensors(), filled(two_tensors(), 0)).status().code(),
            StatusCode::kRefused);
  options = serving.options();
  options.servers = {"127.0.0.1:1"};
  options.connect_timeout = std::chrono::milliseconds(1);
  const auto unanswered = Worker::join(options, two_tensors(), filled(two_tensors(), 0));
  EXPECT_THAT(unanswered.status().message(), HasSubstr("cannot reach the server at 127.0.0.1:1"));
  serving.program().child().signal(SIGINT);
}

TEST(Worker, LocalStepsAreRefused) {
  Serving serving({"--workers=1", "--strategy=diloco"});
  const auto refused = Worker::join(serving.options(), two_tensors(), filled(two_tensors(), 0));
  EXPECT_EQ(refused.status().code(), StatusCode::kRefused);
  EXPECT_THAT(refused.status().message(), HasSubstr("local steps"));
}

TEST(Worker, AfterLeavingOnlyTheArraysAreLeft) {
  Serving serving({"--workers=1"});
  auto worker = Worker::join(serving.options(), two_tensors(), filled(two_tensors(), 3));
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE(worker->pull());
  worker->leave();
  worker->leave();
  EXPECT_EQ(worker->pull().status().code(), StatusCode::kClosed);
  EXPECT_EQ(worker->push_pull().status().code(), StatusCode::kClosed);
  EXPECT_THAT(worker->weights("a"), Each(3.0f));
}

TEST(Worker, ALostServerIsAStatus) {
  Serving serving({"--workers=1"});
  auto worker = Worker::join(serving.options(), two_tensors(), filled(two_tensors(), 0));
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE(worker->pull());
  serving.program().child().signal(SIGKILL);
  auto update = worker->push_pull();
  while (update) update = worker->push_pull();
  EXPECT_THAT(update.status().message(), HasSubstr("lost the server at " + serving.address()));
}

TEST(Version, IsTheHeadersAndTheProtocols) {
  EXPECT_STREQ(library_version(), CAPSTAN_VERSION);
  EXPECT_EQ(protocol_version(), wire::kProtocol);
}

}  // namespace
}  // namespace capstan::testing
