#include "capstan/job/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::job {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string refusal(const Ranks& ranks, config::JobConfig config = {}) {
  try {
    ranks.apply_to(config);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Ranks, MakeOneServerAndWorkers) {
  config::JobConfig config;
  const Ranks ranks{2, 4, "host-a", 7000};
  ranks.apply_to(config);
  EXPECT_EQ(config.workers, 3u);
  EXPECT_EQ(config.listen, "host-a:7000");
  EXPECT_TRUE(config.given.contains("workers")) << "ranks that count differently contradict each other";
  EXPECT_TRUE(ranks.is_worker());
  EXPECT_EQ(ranks.worker(), 1u);
  EXPECT_FALSE(Ranks({0, 4}).is_worker());
  EXPECT_FALSE(Ranks().is_worker());
}

TEST(Ranks, DoNotChangeAJobWithoutRanks) {
  config::JobConfig config;
  config.workers = 9;
  Ranks().apply_to(config);
  EXPECT_EQ(config.workers, 9u);
  EXPECT_EQ(config.listen, "127.0.0.1:0");
  EXPECT_TRUE(config.given.empty());
}

TEST(Ranks, InvalidOnesAreRejected) {
  EXPECT_THAT(refusal({{}, 3}), HasSubstr("--world-size needs --rank"));
  EXPECT_THAT(refusal({0, 1}), HasSubstr("--world-size of at least 2"));
  EXPECT_THAT(refusal({3, 3}), HasSubstr("--rank 3 is outside --world-size 3: ranks are 0 to 2"));
  config::JobConfig config;
  config.servers = 2;
  EXPECT_THAT(refusal({0, 3}, config), HasSubstr("one server"));
  for (const auto* strategy : {"single", "allreduce"}) {
    config::JobConfig none;
    none.strategy = strategy;
    EXPECT_THAT(refusal({0, 3}, none), HasSubstr(std::string("strategy ") + strategy + " has none"));
  }
  EXPECT_EQ(refusal({2, 3}), "");
}

TEST(ResumeCommand, WorksFromAnyFolder) {
  const auto here = fs::current_path().string();
  EXPECT_EQ(resume_command("/opt/bin/capstan", "/runs/a", {}, "token"),
            "/opt/bin/capstan train --resume /runs/a");
  EXPECT_THAT(resume_command("/opt/bin/capstan", "runs/../b", {}, {}), ::testing::EndsWith(here + "/b"));
  EXPECT_EQ(resume_command("/opt/bin/capstan", "/runs/it's mine", {}, {}),
            "/opt/bin/capstan train --resume '/runs/it'\\''s mine'");
}

TEST(ResumeCommand, OfARankHasRankAndTokenFile) {
  EXPECT_EQ(resume_command("capstan", "/runs/a", {0, 3, "host", 7000}, "/etc/job.token"),
            "capstan train --resume /runs/a --rank 0 --world-size 3 --master-addr host --master-port 7000 "
            "--token-file /etc/job.token");
}

}  // namespace
}  // namespace capstan::job
