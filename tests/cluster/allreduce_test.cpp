// The strategy without servers, with real processes.

#include <map>

#include <gmock/gmock.h>

#include "capstan/checkpoint/safetensors.h"
#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

nlohmann::json result_of(const Folder& folder, const std::string& name, const Flags& flags) {
  Program run(folder, quiet_train(folder / name, flags));
  EXPECT_EQ(run.exit_code(), 0) << run.errors();
  return run.json();
}

// The same samples make the same updates, whether gradients are summed by a server, by the workers, or in one
// process.
TEST(Allreduce, EndsWhereSyncAndOneProcessEnd) {
  const Folder folder;
  const Flags common = {"--epochs=4", "--lr=0.02", "--lr-schedule=cosine"};
  const auto with = [&](Flags more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const auto group =
      result_of(folder, "group", with({"--strategy=allreduce", "--workers=3", "--batch-size=16"}));
  const auto sync = result_of(folder, "sync", with({"--strategy=sync", "--workers=3", "--batch-size=16"}));
  const auto single = result_of(folder, "single", with({"--strategy=single", "--batch-size=48"}));
  for (const auto& other : {sync, single}) {
    EXPECT_EQ(group["steps"], other["steps"]);
    EXPECT_NEAR(group["test_loss"], other["test_loss"], 1e-3);
    EXPECT_NEAR(group["train_loss"], other["train_loss"], 2e-2);  // of the last epoch, or of the last updates
  }
  EXPECT_EQ(group["servers"], 0);
  EXPECT_EQ(group["workers"], 3);
  ASSERT_EQ(group["per_worker"].size(), 3u);
  std::uint64_t samples = 0;
  for (const auto& row : group["per_worker"]) samples += row["samples"].get<std::uint64_t>();
  EXPECT_EQ(samples, 4 * 1438u) << "every sample once an epoch";
}

// The group averages the statistics of batch norm after each step; a server averages them for a checkpoint.
TEST(Allreduce, LeavesTheRunningStatisticsThatSyncLeaves) {
  const Folder folder;
  const auto statistics = [&](const std::string& strategy) {
    result_of(folder, strategy,
              {"--network=resnet20", "--dataset=synthetic:3x8x8:4:256", "--batch-size=16", "--max-steps=3",
               "--workers=2", "--strategy=" + strategy});
    std::map<std::string, std::vector<float>> found;
    for (auto& tensor : checkpoint::read_safetensors(folder / strategy / "weights.safetensors").tensors)
      if (tensor.name.find(".running_") != std::string::npos) found[tensor.name] = std::move(tensor.values);
    return found;
  };
  const auto group = statistics("allreduce"), sync = statistics("sync");
  ASSERT_EQ(group.size(), 2 * 19u);
  for (const auto& [name, values] : group) {
    ASSERT_TRUE(sync.contains(name)) << name;
    EXPECT_THAT(values, Pointwise(FloatNear(1e-4f), sync.at(name))) << name;
  }
}

class Group : public ::testing::Test {
 protected:
  // Under way: the first epoch has been evaluated.
  void start() {
    fs::remove_all(folder_ / "run");
    run_.emplace(folder_,
                 quiet_train(folder_ / "run", {"--strategy=allreduce", "--workers=3", "--epochs=500"}));
    ASSERT_TRUE(run_->said("epoch 1 ")) << run_->errors();
    others_ = run_->children(" --group-rank");
    ASSERT_EQ(others_.size(), 2u);
  }

  const Folder folder_;
  std::optional<Program> run_;
  std::vector<pid_t> others_;
};

TEST_F(Group, EndsWithCode3WhenOneIsLost) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    start();
    ::kill(others_[1], signal);
    EXPECT_EQ(run_->exit_code(), 3) << run_->errors();
    EXPECT_EQ(run_->json()["ok"], false);
    EXPECT_THAT(run_->errors(), HasSubstr("worker 2 is lost"));
    EXPECT_THAT(run_->errors(), HasSubstr(signal == SIGSTOP ? "it was stopped" : "killed by signal 9"));
    EXPECT_TRUE(all_ended(others_));
  }
}

TEST_F(Group, EndsWithItsFirst) {
  start();
  run_->child().signal(SIGKILL);
  EXPECT_TRUE(all_ended(others_));
}

TEST_F(Group, StopsTogetherWhenInterrupted) {
  start();
  run_->child().signal(SIGINT);
  EXPECT_EQ(run_->exit_code(), 130) << run_->errors();
  EXPECT_EQ(run_->json()["error"], "interrupted");
  EXPECT_TRUE(fs::exists(folder_ / "run" / "weights.safetensors"));
  EXPECT_TRUE(all_ended(others_));
}

TEST(Allreduce, SaysWhatItCannotDo) {
  const Folder folder;
  const std::pair<Flags, const char*> wrong[] = {
      {{"train", "--strategy=allreduce", "--switch=10=async"}, "does not support switching"},
      {{"train", "--strategy=allreduce:3"}, "allreduce"},
      {{"train", "--strategy=alreduce"}, "did you mean allreduce?"},
      {{"serve", "--strategy=allreduce"}, "has no server"},
      {{"bench", "wire", "--strategy=allreduce"}, "has none"},
      {{"train", "--strategy=allreduce", "--rank=0", "--world-size=3"}, "has none"}};
  for (const auto& [flags, says] : wrong) {
    Program run(folder, flags);
    EXPECT_EQ(run.exit_code(), 2) << run.errors();
    EXPECT_THAT(run.errors(), HasSubstr(says));
    EXPECT_EQ(std::ranges::count(run.errors(), '\n'), 1) << run.errors();
  }
}

}  // namespace
}  // namespace capstan::testing
