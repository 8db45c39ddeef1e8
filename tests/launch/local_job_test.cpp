// The processes of a job on this host: real servers, and shell scripts as workers.

#include "capstan/launch/local_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "capstan/user_error.h"

#include "support/processes.h"
#include "support/temporary_folder.h"

namespace capstan::launch {
namespace {

using testing::all_ended;
using ::testing::AllOf;
using testing::contents;
using testing::eventually;
using ::testing::HasSubstr;
using testing::kTestTimeout;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

class Job : public ::testing::Test {
 protected:
  LocalJob::Options options(std::uint32_t servers) const {
    LocalJob::Options o;
    o.program = program("capstan");
    o.servers = servers;
    o.serve = {"--workers=2", "--servers=" + std::to_string(servers)};
    o.log_folder = folder_.path();
    return o;
  }
  static std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }
  // What has ended, once so many have.
  static std::vector<Processes::Ended> reap(LocalJob& job, std::size_t count) {
    std::vector<Processes::Ended> all;
    EXPECT_TRUE(eventually([&] {
      for (auto& ended : job.reap()) all.push_back(std::move(ended));
      return all.size() >= count;
    }));
    return all;
  }

  const TemporaryFolder folder_;
};

TEST_F(Job, HasServersThatListenOnPortsOfTheirOwn) {
  LocalJob job(options(2));
  ASSERT_EQ(job.addresses().size(), 2u);
  for (const auto& address : job.addresses()) EXPECT_THAT(address, MatchesRegex("127\\.0\\.0\\.1:[0-9]+"));
  EXPECT_NE(job.addresses()[0], job.addresses()[1]);
  EXPECT_EQ(job.address_list(), job.addresses()[0] + "," + job.addresses()[1]);
  EXPECT_TRUE(job.reap().empty()) << "both run";
}

TEST_F(Job, AServerThatDoesNotStartIsSaidWithItsLastLine) {
  auto wrong = options(1);
  wrong.serve = {"--workers=none"};
  EXPECT_THAT(
      [&] { LocalJob job(wrong); },
      ThrowsMessage<UserError>(AllOf(StartsWith("server 0 did not start: "), HasSubstr("--workers"))));
}

TEST_F(Job, WorkersFindTheTokenInTheirEnvironment) {
  LocalJob job(options(1));
  job.start_worker(shell("echo $CAPSTAN_TOKEN >&2; exit 7"));
  const auto ended = reap(job, 1);
  EXPECT_FALSE(ended[0].is_server);
  EXPECT_EQ(ended[0].index, 0u);
  EXPECT_EQ(ended[0].exit.code, 7);
  EXPECT_EQ(ended[0].last_log_line, job.token().text());
  EXPECT_TRUE(job.reap().empty()) << "each is reported once";
}

TEST_F(Job, TakesTheTokenThatItIsGiven) {
  auto o = options(1);
  o.token = cluster::Token::generate();
  LocalJob job(o);
  EXPECT_EQ(job.token().text(), o.token->text());
}

TEST_F(Job, KillsTheWorkerThatIsMeant) {
  LocalJob job(options(1));
  for (int i = 0; i < 2; ++i) job.start_worker(shell("exec sleep 1000"));
  job.kill_worker(1);
  job.kill_worker(2);  // there is none: no effect
  const auto ended = reap(job, 1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].index, 1u);
  EXPECT_EQ(ended[0].exit.signal, SIGKILL);
  EXPECT_FALSE(job.worker(0).poll());
}

TEST_F(Job, WaitEndsWhatDoesNotEndByItself) {
  LocalJob job(options(1));
  job.start_worker(shell("exec sleep 1000"));
  const auto worker = job.worker(0).pid();
  job.wait(SteadyClock::now());
  EXPECT_TRUE(all_ended({worker}));
  const auto ended = reap(job, 2);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_TRUE(ended[0].is_server);
  EXPECT_EQ(ended[0].exit.signal, SIGKILL);
  EXPECT_FALSE(ended[1].is_server);
}

TEST_F(Job, NothingOutlivesIt) {
  pid_t worker = 0;
  {
    LocalJob job(options(1));
    job.start_worker(shell("exec sleep 1000"));
    worker = job.worker(0).pid();
  }
  EXPECT_TRUE(all_ended({worker}));
}

}  // namespace
}  // namespace capstan::launch
