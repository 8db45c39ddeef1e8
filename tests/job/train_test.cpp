// Whole jobs of one process, as a library call.

#include "capstan/job/train.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/job/task_factory.h"
#include "capstan/user_error.h"

#include "job/fakes.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::Contains;
using testing::contents;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

constexpr std::uint64_t kSamples = 96, kBatch = 16, kStepsPerEpoch = kSamples / kBatch;

class TrainTest : public ::testing::Test {
 protected:
  config::JobConfig config(const std::string& run, std::uint32_t epochs) const {
    config::JobConfig config;
    config.strategy = "single";
    config.network = "mlp";
    config.dataset = "synthetic:1x28x28:10:96";
    config.batch_size = kBatch;
    config.epochs = epochs;
    config.threads = config.loader_threads = 1;
    config.checkpoint_every = "4";
    config.train_dir = folder_ / run;
    return config;
  }
  TrainResult run(const config::JobConfig& config, Events& events, StopToken& stop) const {
    const Environment environment{events, stop};
    return train(prepare(config, environment), {cluster::Token::generate(), true, {false, 60}}, environment);
  }
  TrainResult run(const config::JobConfig& config) {
    FakeStop stop;
    return run(config, events_, stop);
  }
  std::string weights_of(const std::string& run) const {
    return contents(folder_ / run / "weights.safetensors");
  }
  std::string refusal(const config::JobConfig& config) {
    FakeStop stop;
    try {
      (void)prepare(config, {events_, stop});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  RecordedEvents events_;
};

// Stops a job after this many evaluated epochs.
class StopAfter final : public Events, public StopToken {
 public:
  explicit StopAfter(std::size_t epochs) : epochs_(epochs) {}
  void message(const std::string&) override {}
  void progress(const Progress&) override {}
  void evaluated(const EvaluationRecord&) override { ++evaluated_; }
  int requests() override { return evaluated_ >= epochs_ ? 1 : 0; }

 private:
  const std::size_t epochs_;
  std::atomic<std::size_t> evaluated_ = 0;
};

TEST_F(TrainTest, WritesARunFolder) {
  const auto result = run(config("a", 2));
  EXPECT_EQ(result.reached.steps, 2 * kStepsPerEpoch);
  EXPECT_EQ(result.reached.epochs, 2);
  EXPECT_EQ(result.checkpoint, 2 * kStepsPerEpoch);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.problem, "");
  ASSERT_EQ(events_.evaluations().size(), 2u);
  EXPECT_EQ(events_.evaluations()[0].version, Version{kStepsPerEpoch});
  EXPECT_EQ(result.test.values.at(1), events_.evaluations()[1].test.values.at(1));
  for (const char* file :
       {"config.toml", "dataset.json", "versions.json", "metrics.jsonl", "weights.safetensors"})
    EXPECT_TRUE(fs::exists(folder_ / "a" / file)) << file;
  EXPECT_THAT(contents(folder_ / "a/metrics.jsonl"), HasSubstr(result.json()));
}

// Half of the training values are 0 and half are 1: mean 0.5, deviation 0.5.
TEST_F(TrainTest, ItsTestPartIsNormalisedAlikeWithoutTheTrainingPart) {
  std::string header = "y", zeros = "\nno", ones = "\nyes", threes = "\nyes";
  for (int i = 0; i < 64; ++i) {
    header += ",p" + std::to_string(i);
    zeros += ",0";
    ones += ",1";
    threes += ",3";
  }
  testing::write_file(folder_ / "t.csv", header + zeros + ones + zeros + ones);
  testing::write_file(folder_ / "v.csv", header + threes);
  auto job = config("run", 1);
  job.dataset = "csv:t.csv:target=y:test=v.csv:shape=1x8x8";
  job.data_dir = folder_.path();
  (void)run(job);
  fs::remove(folder_ / "t.csv");
  const auto task = make_test_task(job);
  constexpr std::uint32_t kFirst[] = {0};
  const auto batch = task.task->batch(Split::kTest, {0, kFirst});
  EXPECT_EQ(batch.target.item<std::int64_t>(), 1);
  ASSERT_EQ(batch.input.numel(), 64);
  EXPECT_TRUE((batch.input == 5).all().item<bool>());
}

TEST_F(TrainTest, AnInterruptedRunResumesToTheSameBitsFromItsFolder) {
  (void)run(config("whole", 4));
  StopAfter stop(2);
  const auto first = run(config("cut", 4), stop, stop);
  EXPECT_TRUE(first.interrupted);
  EXPECT_LT(first.reached.steps, 4 * kStepsPerEpoch);
  EXPECT_EQ(first.checkpoint, first.reached.steps);
  auto again = config("", 4);
  again.train_dir.clear();
  again.resume = (folder_ / "cut").string();
  const auto second = run(again);
  EXPECT_EQ(second.resumed_from, first.reached.steps);
  EXPECT_EQ(second.reached.steps, 4 * kStepsPerEpoch);
  EXPECT_EQ(second.reached.epochs, 4);
  EXPECT_EQ(second.run_dir, (folder_ / "cut").string());
  EXPECT_TRUE(weights_of("cut") == weights_of("whole"));
  EXPECT_FALSE(fs::exists(folder_ / "cut/config.1.toml")) << "nothing has changed";
}

TEST_F(TrainTest, AnUnreadableTestImageEndsAStrictJobAfterACheckpoint) {
  const auto pictures = fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/pictures";
  for (const char* place : {"train/ant/1.png", "train/bee/1.png", "val/ant/1.png"}) {
    fs::create_directories((folder_ / place).parent_path());
    fs::copy_file(pictures / "rgb.png", folder_ / place);
  }
  fs::create_directories(folder_ / "val/bee");
  testing::write_file(folder_ / "val/bee/1.png", "no picture");
  auto job = config("run", 3);
  job.dataset = "imagefolder";
  job.data_dir = folder_.path();
  job.image_size = 8;
  job.strict = true;
  EXPECT_THAT([&] { (void)run(job); }, ThrowsMessage<UserError>(HasSubstr("val/bee/1.png")));
  EXPECT_EQ(checkpoint::list(folder_ / "run").back().version, Version{1}) << "one step is an epoch";
  EXPECT_TRUE(fs::exists(folder_ / "run/weights.safetensors"));
  EXPECT_THAT(contents(folder_ / "run/checkpoints/finished.json"), HasSubstr("stopped"));
}

TEST_F(TrainTest, ANameThatLooksLikeAFileIsSearchedAsOne) {
  testing::write_file(folder_ / "mlp.pt", "");
  auto job = config("run", 1);
  job.network = (folder_ / "mlp.PT").string();
  EXPECT_EQ(refusal(job), "--network " + job.network + ": no such file; did you mean " +
                              (folder_ / "mlp.pt").string() + "?");
  job.network = (folder_ / "other.pt").string();
  EXPECT_THAT(refusal(job), HasSubstr("other.pt: no such file; every worker needs the module's file"));
  job.network = "resnet.18";
  EXPECT_THAT(refusal(job), HasSubstr("--network resnet.18: no such file"));
}

TEST_F(TrainTest, ChangesAreReportedAndTheOldConfigurationIsKept) {
  (void)run(config("a", 1));
  const auto before = contents(folder_ / "a/config.toml");
  auto more = config("a", 2);
  more.resume = "auto";
  const auto result = run(more);
  EXPECT_EQ(result.resumed_from, kStepsPerEpoch);
  EXPECT_THAT(events_.messages(), Contains("resuming with --epochs 2 (before: 1)"));
  EXPECT_EQ(contents(folder_ / "a/config.1.toml"), before);
  EXPECT_NE(contents(folder_ / "a/config.toml"), before);
}

TEST_F(TrainTest, ForbiddenChangesAreRejectedAndNothingIsWritten) {
  (void)run(config("a", 1));
  const auto before = contents(folder_ / "a/metrics.jsonl");
  auto other = config("a", 2);
  other.resume = "auto";
  other.optimizer.name = "adam";
  EXPECT_THAT(refusal(other), HasSubstr("cannot be resumed with --optimizer adam (before: sgd)"));
  EXPECT_EQ(contents(folder_ / "a/metrics.jsonl"), before);
}

// The state arrays of Adam and AdamW have the same names.
TEST_F(TrainTest, ACheckpointOfAnotherOptimizerIsRejectedEvenWithoutItsConfiguration) {
  auto adam = config("a", 1);
  adam.optimizer.name = "adam";
  (void)run(adam);
  fs::remove(folder_ / "a/config.toml");
  auto other = config("b", 2);
  other.optimizer.name = "adamw";
  other.resume = (folder_ / "a").string();
  EXPECT_THAT(refusal(other), HasSubstr("was written with adam"));
}

TEST_F(TrainTest, AFinishedRunHasNothingLeftToTrain) {
  EXPECT_TRUE(run(config("a", 1)).train_loss);
  auto again = config("a", 1);
  again.resume = "auto";
  const auto result = run(again);
  EXPECT_EQ(result.reached.steps, kStepsPerEpoch);
  EXPECT_EQ(result.train_loss, std::nullopt);
  EXPECT_GT(result.test.samples, 0u) << "the weights are evaluated";
  EXPECT_THAT(events_.messages(),
              Contains("nothing is left to train after 6 updates: --epochs 1 is reached"));
}

TEST_F(TrainTest, AReachedLimitOfTheResumedRunIsReported) {
  auto first = config("a", 1);
  first.max_steps = 4;
  (void)run(first);
  first.resume = "auto";
  EXPECT_EQ(run(first).reached.steps, 4u);
  EXPECT_THAT(
      events_.messages(),
      Contains("nothing is left to train after 4 updates: --max-steps 4 is reached (0 lifts the limit)"));
}

TEST_F(TrainTest, ARunWithoutAnUpdateStartsAgain) {
  auto first = config("a", 1);
  first.checkpoint_every = "never";
  first.resume = "auto";
  FakeStop stop;
  stop.request();
  EXPECT_EQ(run(first, events_, stop).reached.steps, 0u);
  ASSERT_TRUE(fs::exists(folder_ / "a/weights.safetensors"));
  const auto result = run(first);
  EXPECT_EQ(result.resumed_from, 0u);
  EXPECT_EQ(result.reached.steps, kStepsPerEpoch);
}

TEST_F(TrainTest, ARunIsNeverOverwritten) {
  (void)run(config("a", 1));
  const auto before = contents(folder_ / "a/metrics.jsonl");
  FakeStop stop;
  EXPECT_THROW((void)run(config("a", 1)), UserError);
  EXPECT_EQ(contents(folder_ / "a/metrics.jsonl"), before);
}

TEST_F(TrainTest, ADivergedRunHasAProblem) {
  auto wild = config("a", 1);
  wild.optimizer.lr = 1e30;
  const auto result = run(wild);
  EXPECT_THAT(result.problem, HasSubstr("training has diverged"));
}

TEST_F(TrainTest, AResumedRunNeedsNoInitialWeights) {
  (void)run(config("a", 1));
  auto first = config("b", 1);
  first.weights = folder_ / "first.safetensors";
  fs::copy_file(folder_ / "a/weights.safetensors", first.weights);
  (void)run(first);
  fs::remove(first.weights);
  first.epochs = 2;
  first.resume = "auto";
  EXPECT_EQ(run(first).reached.steps, 2 * kStepsPerEpoch);
  EXPECT_THAT(contents(folder_ / "b/config.toml"), HasSubstr("first.safetensors"))
      << "the same command is still the same job";
  first.train_dir = folder_ / "c";
  EXPECT_THAT(refusal(first), HasSubstr("first.safetensors")) << "a new run needs them";
}

TEST_F(TrainTest, ARunThatCannotBeResumedIsNotSaidToBe) {
  auto first = config("a", 1);
  first.checkpoint_every = "never";
  (void)run(first);
  EXPECT_TRUE(checkpoint::list(folder_ / "a").empty()) << "none at the end either";
  const auto refused = [&](const config::JobConfig& again) -> std::string {
    try {
      (void)run(again);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto a = (folder_ / "a").string();
  first.resume = "auto";
  EXPECT_EQ(refused(first),
            a + " holds a run already, without a checkpoint to resume from: choose another --train-dir");
  first.resume.clear();
  EXPECT_EQ(refused(first),
            a + " holds a run already, without a checkpoint to resume from: choose another --train-dir");
  (void)run(config("b", 1));
  EXPECT_EQ(refused(config("b", 1)),
            (folder_ / "b").string() +
                " holds a run already: choose another --train-dir, or continue it with --resume auto");
}

TEST_F(TrainTest, AnotherOptimizerStateIsNamedWithItsOption) {
  (void)run(config("a", 1));
  auto other = config("a", 2);
  other.resume = "auto";
  other.optimizer.momentum = 0;
  EXPECT_EQ(refusal(other), checkpoint::folder_of(folder_ / "a", {kStepsPerEpoch}).string() +
                                " has the optimizer state momentum_buffer, but sgd with these options has "
                                "none: see --momentum");
}

TEST_F(TrainTest, WithoutItsConfigurationOnlyTheGivenOptionsAreUsed) {
  (void)run(config("a", 1));
  const auto step = checkpoint::folder_of(folder_ / "a", {kStepsPerEpoch});
  const auto copy = folder_ / "copy";
  fs::copy(step, copy);
  auto more = config("b", 2);
  more.resume = copy.string();
  EXPECT_EQ(run(more).resumed_from, kStepsPerEpoch);
  EXPECT_THAT(events_.messages(),
              Contains(copy.string() + " is a checkpoint without config.toml: using the options given "
                                       "and defaults"));
}

TEST_F(TrainTest, WeightsThatCannotBeWrittenAreNotNamed) {
  fs::create_directories(folder_ / "a/weights.safetensors");
  const auto result = run(config("a", 1));
  EXPECT_THAT(result.problem, HasSubstr("cannot write"));
  EXPECT_THAT(result.summary(), ::testing::Not(HasSubstr("weights.safetensors\n")));
}

TEST_F(TrainTest, AnAddressOfAnotherHostIsRejectedByItsFlag) {
  auto job = config("a", 1);
  job.strategy = "sync";
  job.listen = "192.0.2.1:7000";  // of no host
  try {
    (void)run(job);
    ADD_FAILURE() << "it listens on another host's address";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--listen 192.0.2.1:7000: is not an address of this host"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

}  // namespace
}  // namespace capstan::job
