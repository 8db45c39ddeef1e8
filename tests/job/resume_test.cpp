#include "capstan/job/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "checkpoint/written_run.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

namespace fs = std::filesystem;

// A configuration from flags.
config::JobConfig job(const std::string& strategy = "sync", std::uint32_t workers = 2) {
  config::JobConfig config;
  config.strategy = strategy;
  config.workers = workers;
  config.optimizer.prefer(config.strategy_spec());
  return config;
}

class ResumeTest : public ::testing::Test {
 protected:
  fs::path make_run(const std::string& name, const config::JobConfig& config, Version checkpoint = {7}) {
    const auto run = runs_ / name;
    fs::create_directories(run);
    testing::write_file(run / "config.toml", config.to_toml());
    if (checkpoint.value > 0)
      testing::write_checkpoint(checkpoint::folder_of(run, checkpoint), 1, {}, false, checkpoint);
    return run;
  }
  static std::string error_of(const auto& call) {
    try {
      call();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  const fs::path runs_ = folder_.path();
  std::vector<std::string> complaints_;
};

// ---- which run ----

TEST_F(ResumeTest, ARunIsNamedByItsFolderOrACheckpoint) {
  const auto run = make_run("a", job());
  const auto checkpoint = checkpoint::folder_of(run, {7});
  EXPECT_EQ(run_of(run), run);
  EXPECT_EQ(run_of(checkpoint), run);
  EXPECT_EQ(run_of(checkpoint / ""), run);
  EXPECT_EQ(configuration_of(checkpoint), run / "config.toml");
  EXPECT_EQ(configuration_of(runs_ / "nowhere"), "");
  EXPECT_EQ(configuration_of(""), "") << "not the one of the current folder";
}

TEST_F(ResumeTest, ACheckpointOutsideARunHasNoRunAndNoConfiguration) {
  const auto copy = runs_ / "copies/elsewhere/copy";
  fs::create_directories(copy.parent_path());
  fs::copy(checkpoint::folder_of(make_run("a", job()), {7}), copy);
  testing::write_file(runs_ / "copies/config.toml", "network = 'mlp'\n");
  EXPECT_EQ(run_of(copy), "");
  EXPECT_EQ(configuration_of(copy), "");
  EXPECT_EQ(configuration_to_resume(copy), "") << "the options that are given are used";
  auto config = job();
  config.resume = copy.string();
  EXPECT_EQ(find_resume(config, complaints_)->run, "");
}

TEST_F(ResumeTest, ARunIsNotResumedWithoutItsConfiguration) {
  const auto run = make_run("a", job());
  EXPECT_EQ(configuration_to_resume(run), run / "config.toml");
  const auto refused = [&] { return error_of([&] { (void)configuration_to_resume(run); }); };
  testing::write_file(run / "config.toml", "");
  EXPECT_EQ(configuration_of(run), "");
  EXPECT_EQ(refused(), run.string() + " has no config.toml: pass --config FILE with the run's configuration");
  fs::remove(run / "config.toml");
  testing::write_file(run / "config.1.toml", "epochs = 1\n");
  testing::write_file(run / "config.2.toml", "epochs = 2\n");
  EXPECT_EQ(refused(), run.string() + " has no config.toml: pass --config " +
                           (run / "config.2.toml").string() + ", the run's previous configuration");
  EXPECT_EQ(configuration_to_resume(make_run("b", job(), {0})), runs_ / "b/config.toml");
  EXPECT_EQ(configuration_to_resume(runs_ / "nowhere"), "") << "reported as no run";
}

TEST_F(ResumeTest, TheNewestValidCheckpointIsUsed) {
  const auto run = make_run("a", job(), {7});
  testing::write_checkpoint(checkpoint::folder_of(run, {9}), 1, {}, false, {9});
  auto config = job();
  config.resume = run.string();
  EXPECT_EQ(find_resume(config, complaints_)->from.manifest.version, Version{9});
  config.resume = checkpoint::folder_of(run, {7}).string();
  EXPECT_EQ(find_resume(config, complaints_)->from.manifest.version, Version{7});
  EXPECT_EQ(find_resume(config, complaints_)->run, run);
  EXPECT_THAT(complaints_, IsEmpty());

  const auto file = checkpoint::folder_of(run, {9}) / "weights.safetensors";
  auto bytes = testing::contents(file);
  bytes.back() ^= 0x40;
  testing::write_file(file, bytes);
  config.resume = run.string();
  EXPECT_EQ(find_resume(config, complaints_)->from.manifest.version, Version{7});
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_THAT(complaints_[0], HasSubstr("step-00000009"));
}

TEST_F(ResumeTest, AMissingCheckpointIsAnError) {
  auto config = job();
  EXPECT_FALSE(find_resume(config, complaints_)) << "nothing is resumed";
  config.resume = (runs_ / "nowhere").string();
  EXPECT_THAT(error_of([&] { (void)find_resume(config, complaints_); }),
              HasSubstr("neither a checkpoint nor the folder of a run that has one"));
  const auto run = make_run("a", job());
  testing::write_file(checkpoint::folder_of(run, {7}) / "manifest.json", "{}");
  config.resume = run.string();
  EXPECT_THAT(error_of([&] { (void)find_resume(config, complaints_); }), HasSubstr("no valid checkpoint in"));
}

TEST_F(ResumeTest, AutoResumesTheRunInTheFolderOrStartsANewRun) {
  auto config = job();
  config.resume = "auto";
  EXPECT_FALSE(find_resume(config, complaints_));
  config.train_dir = make_run("empty", job(), {0});
  EXPECT_FALSE(find_resume(config, complaints_));
  config.train_dir = make_run("a", job());
  EXPECT_EQ(find_resume(config, complaints_)->run, config.train_dir);
}

TEST_F(ResumeTest, ARunWithoutAnUpdateMayStartAgain) {
  const auto run = make_run("a", job(), {0});
  EXPECT_FALSE(has_made_an_update(run)) << "no weights";
  testing::write_file(run / "weights.safetensors", "x");
  EXPECT_TRUE(has_made_an_update(run)) << "weights without a record of their version";
  testing::write_file(run / "metrics.jsonl",
                      "{\"kind\":\"progress\",\"step\":0}\n{\"ok\":false,\"steps\":0,\"epochs\":0.0}\n");
  EXPECT_FALSE(has_made_an_update(run)) << "the initial weights";
  testing::write_file(run / "metrics.jsonl", "{\"ok\":false,\"steps\":3,\"epochs\":1.0}\n");
  EXPECT_TRUE(has_made_an_update(run));
  EXPECT_TRUE(has_made_an_update(make_run("b", job())));
}

// ---- the same job ----

TEST_F(ResumeTest, AutoFindsTheNewestRunOfTheSameJob) {
  EXPECT_FALSE(find_same_job(runs_ / "nowhere", job()).run);
  EXPECT_EQ(find_same_job(runs_, job()).why_not, "");
  const auto first = make_run("2026-1", job());
  const auto second = make_run("2026-2", job());
  make_run("2026-3", job(), {0});  // without a checkpoint
  auto other = job();
  other.optimizer.lr = 0.5;
  make_run("2026-4", other);
  EXPECT_EQ(find_same_job(runs_, job()).run, second);
  EXPECT_EQ(find_same_job(runs_, other).run, runs_ / "2026-4");
}

// The default learning rate of async depends on the number of workers.
TEST_F(ResumeTest, AutoComparesGivenNotDerivedValues) {
  const auto run = make_run("a", job("async", 2));
  EXPECT_EQ(find_same_job(runs_, job("async", 4)).run, run);
  auto given = job("async", 4);
  given.optimizer.lr = 0.25;
  EXPECT_FALSE(find_same_job(runs_, given).run);
}

TEST_F(ResumeTest, WithoutAMatchTheClosestRunIsNamed) {
  auto near = job();
  near.batch_size = 16;
  auto far = job("async");
  far.batch_size = 16;
  far.seed = 9;
  make_run("2026-1", near);
  make_run("2026-2", far);
  const auto found = find_same_job(runs_, job());
  EXPECT_FALSE(found.run);
  EXPECT_EQ(found.why_not, "the closest is " + (runs_ / "2026-1").string() +
                               ": --batch-size is 16 in that run, 32 in this job");
}

// ---- what may change ----

TEST_F(ResumeTest, EveryChangeIsReported) {
  const auto run = make_run("a", job());
  EXPECT_THAT(changes(run, job()), IsEmpty());
  auto now = job("async", 3);
  now.epochs = 30;
  now.optimizer.lr = 0.5;
  EXPECT_THAT(changes(run, now), ElementsAre("--epochs 30 (before: 15)", "--workers 3 (before: 2)",
                                             "--strategy async (before: sync)", "--lr 0.5 (before: 0.02)"));
  EXPECT_THAT(changes(runs_ / "nowhere", now), IsEmpty())
      << "a checkpoint without a run has no configuration";
}

TEST_F(ResumeTest, ForbiddenChangesAreRejectedByName) {
  const auto run = make_run("a", job());
  const auto refused = [&](auto change) {
    auto now = job();
    change(now);
    return error_of([&] { (void)changes(checkpoint::folder_of(run, {7}), now); });
  };
  const auto says = [&](const std::string& what) { return run.string() + " cannot be resumed with " + what; };
  EXPECT_EQ(refused([](auto& c) { c.network = "mlp"; }), says("--network mlp (before: lenet)"));
  EXPECT_EQ(refused([](auto& c) { c.dataset = "mnist"; }), says("--dataset mnist (before: digits)"));
  EXPECT_EQ(refused([](auto& c) { c.seed = 2; }), says("--seed 2 (before: 1)"));
  EXPECT_THAT(refused([](auto& c) { c.optimizer.name = "adam"; }),
              HasSubstr("--optimizer adam (before: sgd)"));
  EXPECT_THAT(refused([](auto& c) { c.optimizer.name = "default=sgd,fc*=adam"; }),
              HasSubstr("--optimizer default=sgd,fc*=adam (before: sgd)"));
  EXPECT_EQ(refused([](auto& c) { c.optimizer.name = "sgd:lr=0.5"; }), "") << "an option may change";
  EXPECT_EQ(refused([](auto& c) { c.workers = 4; }), "");
}

}  // namespace
}  // namespace capstan::job
