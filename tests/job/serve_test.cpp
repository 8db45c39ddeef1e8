// A server as `serve` runs it, on a thread of the test, with workers that join over shared memory.

#include "capstan/job/serve.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/client/observer.h"
#include "capstan/client/worker_client.h"
#include "capstan/user_error.h"

#include "job/serving.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

const FlatLayout kLayout({{"weight", {4}}});
const FlatLayout kLarge({{"weight", {4096}}});  // a page and more for each of two servers

Result<std::unique_ptr<client::WorkerClient>> join(Serving& server) {
  return client::WorkerClient::join(server.link(0), server.connector(), kLayout,
                                    std::vector(kLayout.size(), 1.0f));
}

ServeOptions options(std::uint32_t workers = 1) {
  ServeOptions o;
  o.config.workers = workers;
  o.config.optimizer.lr = 0.25;
  o.config.optimizer.momentum = 0;
  o.token = cluster::Token::generate();
  return o;
}

void step(client::WorkerClient& worker, float gradient) {
  std::ranges::fill(worker.gradients(), gradient);
  ASSERT_TRUE(worker.push_pull({.samples = 4, .loss = 0.5f}));
}

// A signal to one of several servers, as a scheduler sends it, must not cost the work of all.
TEST(Serve, AStoppedFollowerLetsTheLeaderSaveFirst) {
  const TemporaryFolder folder;
  auto first = options();
  first.config.servers = 2;
  first.config.train_dir = folder / "run";
  first.config.checkpoint_every = "1000";
  Serving leader(first);
  auto second = first;
  second.leader = leader.address();
  second.config.train_dir.clear();
  Serving follower(second);
  auto link = leader.link(0);
  link.servers.push_back(follower.address());
  auto worker =
      client::WorkerClient::join(link, leader.connector(), kLarge, std::vector(kLarge.size(), 1.0f));
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE((*worker)->pull());
  step(**worker, 2);
  follower.stop();
  follower.await_polls(1);
  EXPECT_TRUE(follower.is_running());
  const auto stopped = testing::eventually([&] {
    const auto update = (*worker)->push_pull({.samples = 4, .loss = 0.5f});
    return !update || update->stop;
  });
  EXPECT_TRUE(stopped);
  (*worker)->leave();
  const auto led = leader.result(), followed = follower.result();
  EXPECT_TRUE(followed.interrupted);
  EXPECT_FALSE(followed.leads);
  std::vector<std::string> complaints;
  const auto saved = checkpoint::newest_good(folder / "run", complaints);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->manifest.version, led.status.version);
}

TEST(Serve, EndsWhenTheWorkersHaveLeft) {
  Serving server(options());
  auto worker = join(server);
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE((*worker)->pull());
  step(**worker, 2);
  EXPECT_EQ((*worker)->weights()[0], 1 - 0.25f * 2);
  (*worker)->leave();
  const auto result = server.result();
  EXPECT_FALSE(result.interrupted);
  EXPECT_TRUE(result.leads);
  EXPECT_EQ(result.status.version.value, 1u);
  EXPECT_THAT(result.json(), HasSubstr(R"("ok":true,"steps":1,)"));
  EXPECT_THAT(result.json(), HasSubstr(R"("workers":1,"lost_workers":0)"));
  EXPECT_THAT(result.text(), HasSubstr("1 updates in "));
}

TEST(Serve, SendsTheJobAndRefusesAMemberThatContradictsIt) {
  auto o = options();
  o.config.network = "mlp";
  o.config.epochs = 7;
  Serving server(o);
  auto link = server.link(0);
  link.index.reset();
  const auto job = client::Observer::fetch_job(link, server.connector());
  ASSERT_TRUE(job) << job.status().message();
  EXPECT_THAT(*job, HasSubstr("network = 'mlp'"));
  EXPECT_THAT(*job, HasSubstr("epochs = '7'"));
  link.job = "epochs = '8'\n";
  const auto other = client::Observer::fetch_job(link, server.connector());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.status().code(), StatusCode::kRefused);
  EXPECT_THAT(other.status().message(), HasSubstr("--epochs 8: the job has 7"));
  link.job = "epochs = \n";
  EXPECT_EQ(client::Observer::fetch_job(link, server.connector()).status().code(), StatusCode::kRefused)
      << "not a configuration";
}

TEST(Serve, AnInterruptBeforeTrainingEndsAtOnce) {
  Serving server(options(2));
  ASSERT_FALSE(server.address().empty());
  server.stop();
  const auto result = server.result();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.status.version.value, 0u);
  EXPECT_THAT(result.json(), HasSubstr(R"("ok":false,)"));
  EXPECT_THAT(result.json(), HasSubstr(R"("error":"interrupted")"));
  EXPECT_FALSE(server.ended_at_once());
}

// `serve` waits for a worker in a long step until its timeout on the fake clock; then it saves.
TEST(Serve, AnInterruptWaitsForAStepAndThenSaves) {
  const TemporaryFolder folder;
  auto o = options();
  o.config.train_dir = folder / "run";
  o.config.checkpoint_every = "1000";
  FakeClock clock;
  Serving server(o, &clock);
  auto worker = join(server);
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE((*worker)->pull());
  step(**worker, 2);
  server.stop();
  server.await_polls(3);
  EXPECT_TRUE(server.is_running()) << "no time has passed on its clock";
  clock.advance(std::chrono::seconds(4));
  const auto result = server.result();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.status.version.value, 1u);
  const auto saved = checkpoint::list(o.config.train_dir);
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].version.value, 1u);
  std::ifstream file(folder / "run/checkpoints/finished.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator(file), {}), "{\"version\":1,\"why\":\"stopped\"}\n");
}

TEST(Serve, ASecondInterruptEndsAtOnce) {
  FakeClock clock;  // stands still
  Serving server(options(), &clock);
  auto worker = join(server);
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE((*worker)->pull());
  server.stop();
  server.stop();
  EXPECT_TRUE(server.result().interrupted);
  EXPECT_TRUE(server.ended_at_once());
}

std::string loss(Serving& server) {
  try {
    (void)server.result();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kLost);
    return failure.what();
  }
  return "no failure";
}

TEST(Serve, AllWorkersLostIsAFailure) {
  Serving server(options());
  auto worker = join(server);
  ASSERT_TRUE(worker) << worker.status().message();
  ASSERT_TRUE((*worker)->pull());
  worker->reset();  // without Leave
  EXPECT_EQ(loss(server), "all workers are lost");
}

TEST(Serve, WithoutAnyWorkerTheTimeoutIsNamed) {
  auto o = options();
  o.config.join_timeout = 0.1;
  Serving server(o);
  EXPECT_EQ(loss(server), "no worker joined within 0.1 s (--join-timeout)");
}

TEST(Serve, ACosineNeedsTheNumberOfUpdates) {
  auto o = options();
  o.config.optimizer.lr_schedule = "cosine";
  Serving server(o);
  EXPECT_THAT([&] { (void)server.result(); },
              ::testing::ThrowsMessage<UserError>(
                  "--lr-schedule cosine needs --total-steps: the number of updates of the whole run"));
}

// A new run would set aside the checkpoints of the earlier one, and remove them later.
TEST(Serve, AFolderWithCheckpointsIsRefusedUnlessItIsResumed) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "run/checkpoints/step-00000010");
  std::ofstream(folder / "run/checkpoints/step-00000010/manifest.json") << "{}";
  auto o = options();
  o.config.train_dir = folder / "run";
  Serving server(o);
  EXPECT_THROW((void)server.result(), UserError);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoints/step-00000010/manifest.json"));
}

}  // namespace
}  // namespace capstan::job
