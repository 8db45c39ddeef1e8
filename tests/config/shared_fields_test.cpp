// The options that all workers of a job share, and the rejection of members that contradict them.

#include "capstan/config/shared_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/config/fields.h"
#include "capstan/user_error.h"

namespace capstan::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// All fields that determine the training, and no field of a host or a process.
TEST(SharedFields, BelongToTheJobAndNotToAProcess) {
  JobConfig config;
  std::vector<std::string> own;
  for (const auto& field : fields(config))
    if (field.is_kept() && !field.is_shared()) own.emplace_back(field.name());
  EXPECT_THAT(own, ::testing::UnorderedElementsAre("data-dir", "loader-threads", "weights", "device",
                                                   "threads", "server-threads", "transport", "token-file",
                                                   "listen", "join-timeout", "evaluator", "log-interval"));
}

TEST(SharedFields, AMemberTakesSharedFieldsAndKeepsItsOwn) {
  JobConfig job;
  job.network = "mlp";
  job.dataset = "synthetic:1x8x8:4:100";
  job.epochs = 7;
  job.seed = 12;
  job.init_seed = 5;
  job.strict = true;
  job.data_dir = "/data/of/the/server";
  job.threads = 9;
  JobConfig member;
  member.data_dir = "/data/here";
  member.threads = 2;
  adopt(member, job_text(job));
  EXPECT_EQ(member.network, "mlp");
  EXPECT_EQ(member.dataset, "synthetic:1x8x8:4:100");
  EXPECT_EQ(member.epochs, 7u);
  EXPECT_EQ(member.seed, 12u);
  EXPECT_EQ(member.init_seed, 5u);
  EXPECT_TRUE(member.strict);
  EXPECT_EQ(member.data_dir, "/data/here");
  EXPECT_EQ(member.threads, 2u);
}

TEST(SharedFields, UnsetFieldsDoNotContradict) {
  JobConfig job, member;
  job.epochs = 99;
  EXPECT_EQ(given_text(member), "");
  EXPECT_EQ(contradictions(job_text(job), given_text(member)), "");
  member.given.emplace("epochs");
  member.epochs = 99;
  EXPECT_EQ(contradictions(job_text(job), given_text(member)), "");
}

TEST(SharedFields, EveryContradictionIsNamedWithBothValues) {
  JobConfig job, member;
  job.seed = 8;
  member.network = "resnet18";
  member.epochs = 3;
  member.init_seed = 4;
  member.threads = 64;
  member.switches = "9=async";
  member.given = {"network", "epochs", "init-seed", "threads", "switch"};
  EXPECT_EQ(
      contradictions(job_text(job), given_text(member)),
      "--network resnet18: the job has lenet; --epochs 3: the job has 15; --init-seed 4: the job has 8; "
      "--switch 9=async: the job has none");
}

// Fields that the job does not set have defaults, which a member's value may contradict.
TEST(SharedFields, DefaultsOfTheJobAreComparedToo) {
  JobConfig job, member;
  job.optimizer.name = "adam";
  member.optimizer.lr = 0.001;  // Adam's default in PyTorch
  member.given = {"lr"};
  EXPECT_EQ(contradictions(job_text(job), given_text(member)), "");
  member.optimizer.lr = 0.1;
  EXPECT_EQ(contradictions(job_text(job), given_text(member)), "--lr 0.1: the job has 0.001");
}

TEST(SharedFields, TextFromAPeerIsValidated) {
  const auto job = job_text({});
  EXPECT_THROW(contradictions(job, "epochs = 'many'"), UserError);
  EXPECT_THROW(contradictions(job, "no such = 1"), UserError);
  EXPECT_THROW(contradictions(job, "data-dir = '/etc'"), UserError) << "not a shared field";
  JobConfig config;
  EXPECT_THROW(adopt(config, "token-file = '/etc/passwd'"), UserError);
  EXPECT_TRUE(config.token_file.empty());
}

}  // namespace
}  // namespace capstan::config
