// Strategies with real processes and a real network.

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "capstan/strategy/strategy.h"
#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

TEST(Strategies, AreListed) {
  const Folder folder;
  Program help(folder, {"train", "--strategy", "help"});
  EXPECT_EQ(help.exit_code(), 0) << help.errors();
  for (const auto& entry : strategy::table()) EXPECT_THAT(help.output(), HasSubstr(entry.name));
  EXPECT_THAT(help.output(), HasSubstr("single"));
  EXPECT_THAT(help.output(), HasSubstr("default=sync,fc*.weight=async"));
}

// 1438 digits for three workers of batch size 32: 15 steps an epoch, 30 in all.
TEST(Strategies, MakeAsManyUpdatesAsTheyAreTo) {
  const std::pair<const char*, std::uint64_t> strategies[] = {
      {"ssp:2", 90},       {"dc-asgd", 90},    {"dc-asgd-a", 90}, {"easgd:0.3:10", 9},
      {"local-sgd:10", 3}, {"local-sgd:7", 5}, {"diloco:20", 2},  {"decoupled-diloco:10:3:5s", 3},
      {"fedavg", 2},       {"fedbuff:2:10", 4}};
  for (const auto& [strategy, steps] : strategies) {
    SCOPED_TRACE(strategy);
    const Folder folder;
    Program run(folder, quiet_train(folder / "run",
                                    {"--workers=3", "--epochs=2", std::string("--strategy=") + strategy}));
    ASSERT_EQ(run.exit_code(), 0) << run.errors();
    EXPECT_EQ(run.json()["steps"], steps) << run.errors();
    std::uint64_t samples = 0;
    const auto workers = run.json()["per_worker"];
    for (const auto& row : workers) samples += row["samples"].get<std::uint64_t>();
    EXPECT_EQ(samples, 2 * 1438u) << "every sample once an epoch";
  }
}

// In times the model's size, for four workers and SGD with momentum.
TEST(Strategies, AreEstimatedWithoutRunning) {
  struct Case {
    const char* strategy;
    double servers, worker, moved;
  };
  const Case cases[] = {{"single", 0, 3, 0},    {"allreduce", 0, 3, 6}, {"sync", 2, 1, 8},
                        {"async", 2, 2, 2},     {"batch:2", 2, 2, 4},   {"dc-asgd-a", 3, 2, 2},
                        {"local-sgd", 1, 3, 8}, {"easgd", 1, 4, 2},     {"diloco", 2, 3, 8}};
  const Folder folder;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.strategy);
    Program run(folder, quiet_train(folder / "run", {"--workers=4", "--dry-run", "--optimizer=sgd",
                                                     std::string("--strategy=") + c.strategy}));
    ASSERT_EQ(run.exit_code(), 0) << run.errors();
    const auto json = run.json();
    const double model = 4 * json["parameters"].get<double>();
    EXPECT_NEAR(json["server_bytes"].get<double>() / model, c.servers, 0.01);
    EXPECT_NEAR(json["worker_bytes"].get<double>() / model, c.worker, 0.01);
    EXPECT_NEAR(json["bytes_per_step"].get<double>() / model, c.moved, 0.01);
  }
}

// One round takes longer than this test waits.
TEST(Strategies, WithManyLocalStepsShowTheirProgressAndCanBeInterrupted) {
  const Folder folder;
  Program run(folder, {"train", "--json", "--train-dir=" + (folder / "run").string(), "--log-interval=0.2",
                       "--threads=1", "--strategy=diloco:1000000", "--epochs=100000"});
  ASSERT_TRUE(run.said("worker 1  step ")) << run.errors();
  const auto far = [](const std::string& errors) {
    const auto at = errors.rfind("worker 0  step ");
    return at == std::string::npos ? 0 : std::atoi(errors.c_str() + at + std::strlen("worker 0  step "));
  };
  EXPECT_TRUE(run.await_errors([&](const std::string& errors) { return far(errors) >= 3; })) << run.errors();
  run.child().signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.errors();
  EXPECT_EQ(run.json()["error"], "interrupted") << "and was not killed: " << run.errors();
  EXPECT_EQ(run.json()["steps"], 0);
}

TEST(Strategies, BackupDropsWhatComesLateAndSaysSo) {
  const Folder folder;
  Program run(folder, quiet_train(folder / "run", {"--workers=3", "--strategy=backup:1", "--max-steps=30",
                                                   "--epochs=20", "--slow-worker=2:10x"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["steps"], 30);
  EXPECT_GT(result["dropped_pushes"], 0);
  EXPECT_LT(result["per_worker"][2]["pushes"], result["per_worker"][0]["pushes"]);
}

TEST(Strategies, ChangeOnTheWay) {
  const Folder folder;
  // 15 updates of three gradients each, then 45 of one each.
  Program run(folder, quiet_train(folder / "run",
                                  {"--workers=3", "--epochs=2", "--strategy=sync", "--switch=15=async"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  EXPECT_EQ(run.json()["steps"], 15 + 45);
}

TEST(Strategies, WithLocalStepsResumeFromACheckpoint) {
  for (const std::string strategy : {"local-sgd:5", "diloco:5"}) {
    SCOPED_TRACE(strategy);
    const Folder folder;
    const Flags flags = {"--workers=2", "--epochs=4", "--strategy=" + strategy, "--checkpoint-every=2"};
    auto first = flags;
    first.push_back("--max-steps=6");
    Program begun(folder, quiet_train(folder / "run", first));
    ASSERT_EQ(begun.exit_code(), 0) << begun.errors();
    EXPECT_EQ(begun.json()["steps"], 6);
    auto second = flags;  // the limit is the run's own: it is lifted by name
    second.insert(second.end(), {"--resume=auto", "--max-steps=0"});
    Program done(folder, quiet_train(folder / "run", second));
    ASSERT_EQ(done.exit_code(), 0) << done.errors();
    EXPECT_EQ(done.json()["resumed_from"], 6);
    EXPECT_EQ(done.json()["steps"], 19) << "23 steps an epoch: 30 done, 62 left in 13 rounds";
    EXPECT_EQ(done.json()["epochs"], 4.0);
  }
}

// 15 steps an epoch of each worker: 30 updates of the default, and 90 of the group without waiting.
TEST(Strategies, OfGroupsOfParameters) {
  const Folder folder;
  Program run(folder, quiet_train(folder / "run", {"--workers=3", "--epochs=2", "--checkpoint-every=15",
                                                   "--strategy=default=sync,fc*.weight=async"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["strategy"], "default=sync,fc*.weight=async");
  EXPECT_EQ(result["steps"], 30);
  EXPECT_EQ(result["dropped_pushes"], 0);
  EXPECT_GT(result["test_accuracy"], 0.3) << "of ten digits a tenth is luck";
  std::ifstream in(folder / "run" / "checkpoints" / "step-00000030" / "manifest.json");
  const auto groups = nlohmann::json::parse(in)["groups"];
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0]["version"], 30);
  EXPECT_EQ(groups[1]["group"], "fc*.weight");
  EXPECT_EQ(groups[1]["version"], 90);
  Program shown(folder, {"inspect", (folder / "run").string() + "/checkpoints/step-00000030", "--json"});
  EXPECT_EQ(shown.exit_code(), 0) << shown.errors();
  EXPECT_EQ(shown.json()["groups"]["fc*.weight"], 90);

  Program more(folder,
               quiet_train(folder / "run", {"--workers=3", "--epochs=3", "--checkpoint-every=15",
                                            "--resume=auto", "--strategy=default=sync,fc*.weight=async"}));
  ASSERT_EQ(more.exit_code(), 0) << more.errors();
  EXPECT_EQ(more.json()["resumed_from"], 30);
  EXPECT_EQ(more.json()["steps"], 45);
}

TEST(Strategies, MistakesAreOneLine) {
  const std::pair<Flags, const char*> wrong[] = {
      {{"--strategy=locl-sgd"}, "did you mean local-sgd?"},
      {{"--strategy=batch:9"}, "K may be at most 2"},
      {{"--strategy=backup:2"}, "leaves none of 2 workers"},
      {{"--strategy=easgd:2"}, "ALPHA must be"},
      {{"--switch=5=local-sgd"}, "local-sgd:10 uses local steps"},
      {{"--switch=async"}, "must be STEP=STRATEGY"},
      {{"--strategy=single", "--switch=5=async"}, "strategy single does not support switching"},
      {{"--slow-worker=7:3x"}, "with a rank below 2"},
      {{"--strategy=default=sync,gc*=async"}, "group gc* matches no tensor of this model"},
      {{"--strategy=default=sync,*=async"}, "the default is left without tensors"},
      {{"--strategy=fc*=async"}, "groups need a default"},
      {{"--strategy=default=sync,fc*=asink"}, "did you mean async?"},
      {{"--strategy=default=sync,fc*=local-sgd"}, "local-sgd is for a whole model"},
      {{"--strategy=default=sync,fc*=async", "--switch=5=async"},
       "cannot be combined with groups of tensors"},
  };
  for (const auto& [flags, says] : wrong) {
    const Folder folder;
    Program run(folder, quiet_train(folder / "run", flags));
    EXPECT_EQ(run.exit_code(), 2);
    EXPECT_THAT(run.errors(), HasSubstr(says));
    EXPECT_EQ(std::ranges::count(run.errors(), '\n'), 1) << run.errors();
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

}  // namespace
}  // namespace capstan::testing
