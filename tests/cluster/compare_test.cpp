// `capstan compare` as a user runs it.

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> compare(const fs::path& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"compare", "--json", "--train-dir=" + folder.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Compare, RunsEachStrategyAndShowsThemSideBySide) {
  const Folder folder;
  Program run(folder, compare(folder / "all", {"--epochs=2", "--strategies", "single,sync,async",
                                               "--target=0.3", "--workers", "2"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["target"], 0.3);
  ASSERT_EQ(result["runs"].size(), 3u);
  for (const char* text : {"1 of 3: single", "2 of 3: sync", "3 of 3: async", "epoch 2 "})
    EXPECT_THAT(run.errors(), HasSubstr(text));
  const double single = result["runs"][0]["samples_per_second"];
  for (const auto& row : result["runs"]) {
    for (const char* key : {"strategy", "ok", "seconds", "samples_per_second", "speedup", "test_accuracy",
                            "test_loss", "seconds_to_target", "staleness_mean", "staleness_max", "steps",
                            "epochs", "run_dir", "evaluations"})
      EXPECT_TRUE(row.contains(key)) << key;
    // 1,438 samples, twice, in whatever updates.
    EXPECT_EQ(row["epochs"], 2.0);
    ASSERT_EQ(row["evaluations"].size(), 2u) << row.dump();
    EXPECT_EQ(row["evaluations"][0]["samples"], 1438);
    EXPECT_EQ(row["evaluations"][1]["samples"], 2876);
    EXPECT_EQ(row["evaluations"][1]["seconds"], row["seconds"]);
    EXPECT_EQ(row["evaluations"][1]["test_accuracy"], row["test_accuracy"]);
    EXPECT_LT(row["evaluations"][0]["seconds"], row["evaluations"][1]["seconds"]);
    EXPECT_DOUBLE_EQ(row["speedup"], row["samples_per_second"].get<double>() / single);
    // Of two epochs at least one reaches so little.
    const auto& reached =
        row["evaluations"][0]["test_accuracy"] >= 0.3 ? row["evaluations"][0] : row["evaluations"][1];
    ASSERT_GE(reached["test_accuracy"], 0.3);
    EXPECT_EQ(row["seconds_to_target"], reached["seconds"]);
    EXPECT_TRUE(fs::exists(fs::path(row["run_dir"].get<std::string>()) / "weights.safetensors"));
  }
  EXPECT_EQ(result["runs"][0]["steps"], 2 * 45);
  EXPECT_EQ(result["runs"][1]["steps"], 2 * 23);
  const auto html = text_of(result["page"].get<std::string>());
  EXPECT_THAT(
      html,
      AllOf(HasSubstr(R"({"metric":"accuracy","percent":true,"target":0.3,"runs":[{"strategy":"single")"),
            HasSubstr("lenet on digits: single, sync, async"), HasSubstr(R"("samples":1438.0,"value":)"),
            Not(HasSubstr("src="))));
}

TEST(Compare, PrintsATableForPeople) {
  const Folder folder;
  Program run(folder,
              {"compare", "--strategies=sync", "--epochs=1", "--train-dir=" + (folder / "all").string()});
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  EXPECT_THAT(run.output(), AllOf(HasSubstr("strategy"), HasSubstr("—"), HasSubstr("compare.html\n")));
  EXPECT_EQ(std::count(run.output().begin(), run.output().end(), '\n'), 3);
}

// Commas stand between groups, so semicolons between strategies.
TEST(Compare, TakesStrategiesWithGroups) {
  const Folder folder;
  Program run(folder, compare(folder / "all", {"--strategies=sync;default=sync,fc*=async", "--epochs=1"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto runs = run.json()["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["strategy"], "sync");
  EXPECT_EQ(runs[1]["strategy"], "default=sync,fc*=async");
  EXPECT_EQ(runs[0]["steps"], runs[1]["steps"]);
  EXPECT_TRUE(fs::exists(folder / "all/2-default-sync-fc--async/config.toml"));
}

TEST(Compare, PassesAConfigurationOnToTrain) {
  const Folder folder;
  std::ofstream(folder / "job.toml") << "epochs = 1\nbatch-size = 64\nstrategy = \"async\"\n";
  Program run(folder,
              compare(folder / "all", {"--strategies=sync", "--config", (folder / "job.toml").string()}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  EXPECT_EQ(run.json()["runs"][0]["strategy"], "sync");
  EXPECT_EQ(run.json()["runs"][0]["steps"], 12) << "1,438 samples in 2 × 64";
}

TEST(Compare, WrongInputIsOneLineBeforeAnythingRuns) {
  const Folder folder;
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--strategies=sync,snyc"}, "did you mean sync?"},
      {{"--strategies=single,sync,single"}, "named twice"},
      {{"--strategies=sync,"}, "empty"},
      {{"--strategies=sync,default=sync,fc*=async"}, "use semicolons between strategies"},
      {{"--strategies=sync;default=sync,gc*=async"}, "group gc* matches no tensor"},
      {{"--strategies=sync;sync"}, "named twice"},
      {{"--strategies=sync,batch:3", "--workers=2"}, "at most 2"},
      {{"--strategies=sync", "--batch-size=0"}, "--batch-size 0"},
      {{"--strategies=sync", "--batchsize", "3"}, "did you mean --batch-size?"},
      {{"--strategy=sync"}, "--strategies"},
      {{"--max_steps", "7"}, "--epochs"},
      {{"--target-accuracy=97"}, "0 to 1"},
      {{"--strategies=single", "--dataset=mnist"}, "--data-dir"},
  };
  for (const auto& [flags, says] : cases) {
    Program run(folder, compare(folder / "all", flags));
    EXPECT_EQ(run.exit_code(), 2) << says;
    const auto errors = run.errors();
    EXPECT_THAT(errors, HasSubstr(says));
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(run.json()["ok"], false) << run.output();
    EXPECT_FALSE(fs::exists(folder / "all"));
  }
}

// The processes of a run are children of the child.
std::vector<pid_t> processes(const Program& run, const std::string& text) {
  std::vector<pid_t> found;
  for (const auto child : run.children("train")) {
    std::ifstream list("/proc/" + std::to_string(child) + "/task/" + std::to_string(child) + "/children");
    for (pid_t pid; list >> pid;) {
      auto line = text_of("/proc/" + std::to_string(pid) + "/cmdline");
      std::replace(line.begin(), line.end(), '\0', ' ');
      if (line.find(text) != std::string::npos) found.push_back(pid);
    }
  }
  return found;
}

TEST(Compare, ARunThatFailsLeavesTheOthers) {
  const Folder folder;
  Program run(folder,
              compare(folder / "all", {"--strategies=sync,single", "--epochs=3", "--slow-worker=0:20x"}));
  ASSERT_TRUE(run.said("epoch 1 ")) << run.errors();
  const auto servers = processes(run, " serve ");
  ASSERT_EQ(servers.size(), 1u);
  ::kill(servers[0], SIGKILL);
  EXPECT_EQ(run.exit_code(), 1) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["ok"], false);
  EXPECT_THAT(result["error"].get<std::string>(), HasSubstr("sync: failed: server 0 is lost"));
  ASSERT_EQ(result["runs"].size(), 2u);
  EXPECT_EQ(result["runs"][0]["ok"], false);
  EXPECT_EQ(result["runs"][1]["ok"], true);
  EXPECT_EQ(result["runs"][1]["epochs"], 3.0);
  EXPECT_THAT(text_of(result["page"].get<std::string>()), HasSubstr("failed: server 0 is lost"));
}

TEST(Compare, AnInterruptShowsWhatIsThere) {
  const Folder folder;
  Program run(folder, compare(folder / "all", {"--strategies=async,sync,single", "--epochs=30"}));
  ASSERT_TRUE(run.said("2 of 3: sync", 200)) << run.errors();
  ASSERT_TRUE(run.said("epoch 1  step 23 ")) << run.errors();
  const auto workers = processes(run, " work ");
  EXPECT_EQ(workers.size(), 2u);
  run.child().signal(SIGINT);
  EXPECT_EQ(run.exit_code(), 130) << run.errors();
  EXPECT_TRUE(all_ended(workers));
  const auto result = run.json();
  ASSERT_EQ(result["runs"].size(), 3u);
  EXPECT_EQ(result["ok"], false);
  EXPECT_EQ(result["runs"][0]["ok"], true);
  EXPECT_EQ(result["runs"][1]["error"], "interrupted");
  EXPECT_LT(result["runs"][1]["epochs"], 30.0);
  EXPECT_EQ(result["runs"][2]["error"], "not run");
  EXPECT_TRUE(fs::exists(folder / "all" / "compare.html"));
}

TEST(Compare, TakesItsRunsAlongWhereItIsKilled) {
  const Folder folder;
  Program run(folder, compare(folder / "all", {"--strategies=sync", "--epochs=100"}));
  ASSERT_TRUE(run.said("epoch 1 ")) << run.errors();
  auto all = processes(run, "capstan");
  EXPECT_EQ(all.size(), 3u);
  run.child().signal(SIGKILL);
  EXPECT_TRUE(all_ended(all));
}

}  // namespace
}  // namespace capstan::testing
