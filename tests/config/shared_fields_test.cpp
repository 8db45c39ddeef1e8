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

// The error of a member that adopts this configuration; empty if it does.
std::string complaint(JobConfig member, const std::string& job) {
  try {
    adopt(member, job);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(SharedFields, AServerChoosesNoFileOutsideOfAMembersFolders) {
  const auto dataset = [](const std::string& name) { return complaint({}, "dataset = '" + name + "'"); };
  for (const auto* name : {"csv:/etc/passwd:target=y", "text:/etc/passwd", "arrays:/a.npz", "arrays:../a.npz",
                           "csv:a/../../b.csv:target=y", "csv:a.csv:target=y:test=/b.csv",
                           "arrays:x.npy:target=/y.npy", "arrays:x.npy:target=y.npy:test=a.npy,/b.npy"})
    EXPECT_THAT(dataset(name), HasSubstr("give the worker the same --dataset")) << name;
  for (const auto* name : {"digits", "csv:a.csv:target=y", "arrays:sub/x..npy:target=y.npy", "text:a.txt",
                           "synthetic:1x8x8:4:100"})
    EXPECT_EQ(dataset(name), "") << name;
  EXPECT_THAT(complaint({}, "network = '/tmp/net.pt'"), HasSubstr("its own --network"));
  EXPECT_THAT(complaint({}, "network = 'a/net'"), HasSubstr("its own --network"));
  EXPECT_EQ(complaint({}, "network = 'net.pt'"), "");
}

TEST(SharedFields, AMembersOwnFilesStay) {
  JobConfig member;
  member.network = "/here/net.pt";
  member.dataset = "csv:/here/a.csv:target=y";
  adopt(member, "network = 'net.pt'\ndataset = 'csv:/here/a.csv:target=y'");
  EXPECT_EQ(member.network, "/here/net.pt");
  EXPECT_EQ(member.dataset, "csv:/here/a.csv:target=y");
  member.given = {"dataset"};
  EXPECT_THAT(complaint(member, "dataset = 'csv:b.csv:target=y'"), HasSubstr("the job has csv:b.csv"));
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
