// `capstan train` as a user runs it.

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> train(const fs::path& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"train", "--json", "--train-dir=" + folder.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Train, DefaultsLearnDigitsAndLeaveARunFolder) {
  const Folder folder;
  Program run(folder, train(folder / "run"));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  for (const char* key : {"ok",           "network",        "dataset",         "strategy",
                          "workers",      "servers",        "transport",       "optimizer",
                          "steps",        "epochs",         "seconds",         "samples_per_second",
                          "train_loss",   "test_loss",      "test_accuracy",   "metrics",
                          "bytes_pushed", "bytes_pulled",   "compute_seconds", "communication_seconds",
                          "data_seconds", "test_top5",      "resumed_from",    "checkpoint",
                          "lost_workers", "dropped_pushes", "staleness_mean",  "staleness_max",
                          "run_dir"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result.size(), 30u);
  EXPECT_GE(result["test_accuracy"].get<double>(), 0.97);
  EXPECT_EQ(result["strategy"], "sync");
  EXPECT_EQ(result["workers"], 2);
  EXPECT_EQ(result["lost_workers"], 0);
  // 1,438 samples in global batches of 64 are 23 steps an epoch; each worker pushes 431,080 floats a step.
  EXPECT_EQ(result["steps"], 15 * 23);
  EXPECT_EQ(result["bytes_pushed"], 2 * 15 * 23 * 431080 * 4);
  for (const char* file : {"config.toml", "versions.json", "metrics.jsonl", "weights.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder / "run" / file)) << file;
  }
}

std::string weights_of(const std::vector<std::string>& flags) {
  const Folder folder;
  auto arguments = flags;
  arguments.insert(arguments.end(),
                   {"--epochs=2", "--dataset=synthetic:1x28x28:10:512", "--log-interval=60"});
  Program run(folder, train(folder / "run", arguments));
  EXPECT_EQ(run.exit_code(), 0) << run.errors();
  return text_of(folder / "run" / "weights.safetensors");
}

TEST(Train, SyncGivesTheSameBitsTwiceAndWithTwoServersAndAsABatchOfAll) {
  const auto once = weights_of({});
  ASSERT_GT(once.size(), 431080u * 4);
  EXPECT_EQ(once, weights_of({}));
  EXPECT_EQ(once, weights_of({"--servers=2"}));
  EXPECT_EQ(once, weights_of({"--num-aggregate=2"}));
  EXPECT_NE(once, weights_of({"--seed=2"}));
}

TEST(Train, AugmentedImagesAreTheSameWithAnyNumberOfLoaderThreads) {
  const auto once = weights_of({"--augment=crop-flip", "--loader-threads=1"});
  EXPECT_EQ(once, weights_of({"--augment=crop-flip", "--loader-threads=3"}));
  EXPECT_NE(once, weights_of({"--augment=none"}));
}

TEST(Train, AsyncWithOneWorkerEqualsSingle) {
  EXPECT_EQ(weights_of({"--strategy=async", "--workers=1", "--threads=1"}),
            weights_of({"--strategy=single", "--threads=1"}));
}

TEST(Train, ItsConfigurationRunsTheSameJobAgain) {
  const Folder folder;
  Program first(folder, train(folder / "a", {"--epochs=1", "--optimizer=adam", "--lr=0.001", "--workers=1"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  Program second(folder, train(folder / "b", {"--config=" + (folder / "a" / "config.toml").string()}));
  ASSERT_EQ(second.exit_code(), 0) << second.errors();
  EXPECT_EQ(text_of(folder / "a" / "weights.safetensors"), text_of(folder / "b" / "weights.safetensors"));
  EXPECT_EQ(first.json()["train_loss"], second.json()["train_loss"]);
}

TEST(Train, StopsAfterMaxSteps) {
  for (const char* strategy : {"sync", "async", "batch:2"}) {
    const Folder folder;
    Program run(folder, train(folder / "run",
                              {"--max-steps=7", std::string("--strategy=") + strategy, "--workers=3"}));
    ASSERT_EQ(run.exit_code(), 0) << run.errors();
    EXPECT_EQ(run.json()["steps"], 7) << strategy;
  }
}

TEST(Train, NeverOverwritesARun) {
  const Folder folder;
  Program first(folder, train(folder / "run", {"--max-steps=1"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  const auto before = text_of(folder / "run" / "metrics.jsonl");
  Program second(folder, train(folder / "run", {"--max-steps=1"}));
  EXPECT_EQ(second.exit_code(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("holds a run already"));
  EXPECT_EQ(text_of(folder / "run" / "metrics.jsonl"), before);
}

struct Wrong {
  std::vector<std::string> flags;
  std::string says;
};

TEST(Train, WrongInputIsOneLineThatSaysWhatWouldBeRight) {
  const Folder folder;
  // One of each kind of error; unit tests cover the others.
  const std::vector<Wrong> cases = {
      {{"--batchsize=3"}, "--batch-size"},   {{"--network=lenett"}, "lenet"},
      {{"--rank=0"}, "--world-size"},        {{"--world-size=3"}, "--rank"},
      {{"--listen=here"}, "127.0.0.1:7000"}, {{"digits"}, "digits"},
  };
  for (const auto& wrong : cases) {
    Program run(folder, train(folder / "run", wrong.flags));
    EXPECT_EQ(run.exit_code(), 2) << wrong.flags[0];
    const auto errors = run.errors();
    EXPECT_THAT(errors, HasSubstr(wrong.says)) << wrong.flags[0];
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(run.json()["ok"], false) << run.output();
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

// The weights a run leaves are those the next begins with, in this process and in others.
TEST(Train, BeginsWithGivenWeights) {
  const Folder folder;
  Program first(folder, train(folder / "first", {"--max-steps=40"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  const auto weights = "--weights=" + (folder / "first" / "weights.safetensors").string();
  const double reached = first.json()["test_loss"];
  for (const std::string strategy : {"single", "sync"}) {
    const auto next = folder / strategy;
    Program second(folder, train(next, {weights, "--strategy=" + strategy, "--max-steps=1", "--lr=1e-9"}));
    ASSERT_EQ(second.exit_code(), 0) << second.errors();
    EXPECT_NEAR(second.json()["test_loss"], reached, 1e-4 * reached) << strategy;
    EXPECT_THAT(text_of(next / "config.toml"), HasSubstr("weights = "));
  }
}

// ---- processes that end ----

class Termination : public ::testing::Test {
 protected:
  // A job that is under way: the first epoch has been evaluated. Without --epochs it does not end by itself.
  void start(std::vector<std::string> more = {}) {
    more.insert(more.begin(), "--epochs=10000");
    run_.emplace(folder_, train(folder_ / "run", std::move(more)));
    ASSERT_TRUE(run_->said("epoch 1 ")) << run_->errors();
    workers_ = run_->children(" work ");
    servers_ = run_->children(" serve ");
  }

  const Folder folder_;
  std::optional<Program> run_;
  std::vector<pid_t> workers_, servers_;
};

TEST_F(Termination, OfAWorkerLeavesTheOthersTraining) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    fs::remove_all(folder_ / "run");
    start({"--epochs=40"});
    ASSERT_EQ(workers_.size(), 2u);
    ::kill(workers_[1], signal);
    EXPECT_EQ(run_->exit_code(), 0) << run_->errors();
    EXPECT_EQ(run_->json()["lost_workers"], 1);
    EXPECT_EQ(run_->json()["steps"], 40 * 23);
    EXPECT_THAT(run_->errors(), HasSubstr("worker 1 is lost"));
    EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
  }
}

TEST_F(Termination, OfAWorkerWithTwoServersLeavesTheOthersTraining) {
  start({"--servers=2", "--workers=3", "--epochs=40"});
  ASSERT_EQ(servers_.size(), 2u);
  ::kill(workers_[0], SIGKILL);
  EXPECT_EQ(run_->exit_code(), 0) << run_->errors();
  EXPECT_EQ(run_->json()["lost_workers"], 1);
  EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
}

TEST_F(Termination, OfAServerEndsTheJobWithCode3) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    for (std::size_t server : {0u, 1u}) {
      fs::remove_all(folder_ / "run");
      start({"--servers=2"});
      ASSERT_EQ(servers_.size(), 2u);
      ::kill(servers_[server], signal);
      EXPECT_EQ(run_->exit_code(), 3) << run_->errors();
      EXPECT_EQ(run_->json()["ok"], false);
      EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
    }
  }
}

TEST_F(Termination, OfAllWorkersEndsTheJobWithCode3) {
  start();
  for (const auto pid : workers_) ::kill(pid, SIGKILL);
  EXPECT_EQ(run_->exit_code(), 3) << run_->errors();
  EXPECT_TRUE(all_ended(servers_));
}

TEST_F(Termination, OfTheLauncherEndsAllProcesses) {
  start();
  run_->child().signal(SIGKILL);
  EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
}

TEST_F(Termination, ByInterruptKeepsTheWeights) {
  start();
  run_->child().signal(SIGINT);
  EXPECT_EQ(run_->exit_code(), 130) << run_->errors();
  EXPECT_EQ(run_->json()["ok"], false);
  EXPECT_EQ(run_->json()["error"], "interrupted");
  EXPECT_TRUE(fs::exists(folder_ / "run" / "weights.safetensors"));
  EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
}

TEST_F(Termination, ByAClosedTerminalKeepsTheWeights) {
  start();
  run_->child().signal(SIGHUP);
  EXPECT_EQ(run_->exit_code(), 130) << run_->errors();
  EXPECT_TRUE(fs::exists(folder_ / "run" / "weights.safetensors"));
  EXPECT_TRUE(all_ended(workers_) && all_ended(servers_));
}

TEST(Train, AClosedTerminalDoesNotEndWhatIgnoresIt) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--epochs=400"}), {},
              by_shell("trap '' HUP; exec \"$0\" \"$@\""));
  ASSERT_TRUE(run.said("epoch 1 ")) << run.errors();
  run.child().signal(SIGHUP);
  ASSERT_TRUE(run.said("epoch 3 ")) << run.errors();
  ASSERT_FALSE(run.child().poll()) << "it continues after the signal";
  run.child().signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.errors();
}

// As `timeout`, systemd and schedulers stop a job.
TEST(Train, ASignalToAllItsProcessesSavesAsCtrlCDoes) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--epochs=10000", "--servers=2"}), {},
              by_shell("exec setsid \"$0\" \"$@\""));
  ASSERT_TRUE(run.said("epoch 2 ")) << run.errors();
  ASSERT_EQ(::kill(-run.child().pid(), SIGTERM), 0);
  EXPECT_EQ(run.exit_code(), 130) << run.errors();
  EXPECT_THAT(run.errors(), HasSubstr("interrupted; to resume:"));
  EXPECT_EQ(run.json()["checkpoint"], run.json()["steps"]);
}

TEST(Train, WritesNoTextIntoFilesIfItsStreamsAreClosed) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--max-steps=2"}), {},
              by_shell("exec \"$0\" \"$@\" <&- >&- 2>&-"));
  EXPECT_EQ(run.exit_code(), 0);
  std::ifstream metrics(folder / "run" / "metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) EXPECT_EQ(line.substr(0, 1), "{") << line;
  EXPECT_GT(lines, 0);
}

// OpenMP reads it when it is loaded, so that it must be there when a program starts: /proc shows just that.
TEST(Train, ProcessesThatComputeStartWithThreadsThatSleep) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--epochs=10000"}), {},
              by_shell("unset OMP_WAIT_POLICY; exec \"$0\" \"$@\""));
  ASSERT_TRUE(run.said("epoch 1 ")) << run.errors();
  auto processes = run.children(" work ");
  ASSERT_EQ(processes.size(), 2u);
  processes.push_back(run.child().pid());
  for (const auto pid : processes) {
    auto environment = text_of("/proc/" + std::to_string(pid) + "/environ");
    std::ranges::replace(environment, '\0', '\n');
    EXPECT_THAT("\n" + environment, HasSubstr("\nOMP_WAIT_POLICY=passive\n"));
  }
  run.child().signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.errors();
}

// A launcher that is stopped for some seconds, until its workers have made all their steps, does not take
// them for lost.
TEST_F(Termination, IsNotCausedByAPauseOfTheLauncher) {
  start({"--max-steps=300", "--slow-worker=0:2x"});
  run_->child().signal(SIGSTOP);
  EXPECT_TRUE(all_ended(workers_));
  run_->child().signal(SIGCONT);
  EXPECT_EQ(run_->exit_code(), 0) << run_->errors();
  EXPECT_EQ(run_->json()["steps"], 300);
}

TEST(Train, NeedsNoStandardErrorAndNoUtf8) {
  const Folder folder;
  Program mute(folder, train(folder / "mute", {"--max-steps=2"}), {}, by_shell("exec \"$0\" \"$@\" 2>&-"));
  EXPECT_EQ(mute.exit_code(), 0);
  EXPECT_EQ(mute.json()["ok"], true);
  Program odd(folder, train(folder / "\xff\xfe", {"--max-steps=2"}));
  EXPECT_EQ(odd.exit_code(), 0) << odd.errors();
  EXPECT_EQ(odd.json()["ok"], true);
  Program wrong(folder, train(folder / "wrong", {"--network=\xff"}));
  EXPECT_EQ(wrong.exit_code(), 2) << wrong.errors();
  EXPECT_EQ(wrong.json()["ok"], false);
  Program full(folder, train(folder / "full", {"--max-steps=2"}), {},
               by_shell("exec \"$0\" \"$@\" >/dev/full"));
  EXPECT_EQ(full.exit_code(), 1) << full.errors();
}

// Each ends with the weights of its own job, not with the other's.
TEST(Train, TwoJobsAtOnceDoNotMeet) {
  const Folder folder;
  const auto job = [&](const std::string& name, const std::string& seed) {
    return train(folder / name, {"--epochs=2", "--seed=" + seed});
  };
  Program a(folder, job("a", "1")), b(folder, job("b", "2"));
  EXPECT_EQ(a.exit_code(), 0) << a.errors();
  EXPECT_EQ(b.exit_code(), 0) << b.errors();
  for (const auto& [name, seed] : {std::pair{"a", "1"}, {"b", "2"}}) {
    const auto alone = std::string(name) + "-alone";
    Program solo(folder, job(alone, seed));
    ASSERT_EQ(solo.exit_code(), 0) << solo.errors();
    const auto expected = text_of(folder / alone / "weights.safetensors");
    ASSERT_GT(expected.size(), 431080u * 4);
    EXPECT_TRUE(text_of(folder / name / "weights.safetensors") == expected) << name;
  }
}

// `capstan train | head -1`: the pipe closes on the way.
TEST(Train, AClosedPipeDoesNotEndIt) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--epochs=3", "--log-interval=0.05"}), {},
              by_shell("{ \"$0\" \"$@\" 2>&1; echo $? >'" + (folder / "code").string() + "'; } | head -1"));
  EXPECT_EQ(run.exit_code(), 0);
  EXPECT_EQ(text_of(folder / "code"), "1\n") << "only the result could not be written";
  EXPECT_TRUE(fs::exists(folder / "run" / "weights.safetensors"));
  EXPECT_TRUE(fs::exists(folder / "run" / "checkpoints" / "step-00000069"));
}

}  // namespace
}  // namespace capstan::testing
