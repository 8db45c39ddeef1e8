#include "capstan/lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/machine.h"
#include "capstan/user_error.h"

#include "lab/registry_with_trainer.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LabPlan planned(LabRequest request) {
  return plan_lab(request, registry_with("DdpTrainer"));
}

TEST(PlanLab, WithoutAnExperimentThereIsOneConfiguration) {
  const auto plan = planned({});
  EXPECT_EQ(plan.experiment, "bench ps");
  EXPECT_EQ(plan.repeat, 5u);
  ASSERT_EQ(plan.cases.size(), 1u);
  EXPECT_EQ(plan.cases[0].name, "DdpTrainer rpc_hook, 2 trainers, 1 server");
  EXPECT_EQ(planned({{{"trainer", "single", ""}}, "", false, {}}).cases[0].name, "single, 1 trainer");
}

TEST(PlanLab, QuickIsOverriddenByTheCommandLineOnly) {
  const auto quick = planned({{}, "strategy_sync", true, {}});
  EXPECT_EQ(quick.repeat, 2u);
  EXPECT_EQ(quick.cases[0].resolved.plan.max_steps, 4u);  // 8 in the file
  EXPECT_EQ(quick.cases[0].resolved.plan.epochs, 1u);
  const auto other = planned({{{"epochs", "4", ""}}, "strategy_sync", true, 7});
  EXPECT_EQ(other.repeat, 7u);
  EXPECT_EQ(other.cases[0].resolved.plan.epochs, 4u);
}

TEST(PlanLab, TheCommandLineOverridesAnAxis) {
  EXPECT_EQ(planned({{}, "scaling", false, {}}).cases.size(), 6u);
  const auto plan = planned({{{"ntrainer", "3", ""}}, "scaling", false, {}});
  ASSERT_EQ(plan.cases.size(), 2u);
  EXPECT_EQ(plan.cases[0].name, "scaling [server=AverageParameterServer]");
  EXPECT_EQ(plan.cases[0].resolved.plan.trainers, 3u);
}

TEST(PlanLab, AllExperimentsWithoutThoseThatNeedDevices) {
  const auto plan = planned({{}, kAllExperiments, true, {}});
  EXPECT_EQ(plan.experiment, "all");
  EXPECT_EQ(plan.skipped.size(), 8u);
  EXPECT_THAT(plan.skipped, Contains(HasSubstr("ddp_cuda_rpc: skipped: needs CUDA devices (")));
  std::set<std::string> names;
  for (const auto& each : plan.cases) names.insert(each.name);
  EXPECT_EQ(names.size(), plan.cases.size());
  EXPECT_THAT(names, Contains("ddp_cpu_rpc"));
}

TEST(PlanLab, SeveralConfigurationsAreSavedInFoldersOfTheirOwn) {
  const TemporaryFolder folder;
  const auto save = (folder / "out").string();
  EXPECT_EQ(planned({{{"save", save, ""}}, "", false, {}}).cases[0].resolved.plan.save, save);
  const auto plan = planned({{{"save", save, ""}}, "scaling", false, {}});
  EXPECT_EQ(plan.cases[1].resolved.plan.save.parent_path(), save);
  EXPECT_TRUE(std::filesystem::is_directory(plan.cases[1].resolved.plan.save));
  EXPECT_NE(plan.cases[0].resolved.plan.save, plan.cases[1].resolved.plan.save);
}

struct Stop final : job::StopToken {
  std::function<bool()> wanted = [] { return false; };
  int requests() override { return wanted() ? 1 : 0; }
};

// One trainer, which is a shell script. With a batch size of 13, it fails in its second measured run; with
// 14, that run does not end.
class RunLab : public ::testing::Test {
 protected:
  LabOutcome run(const std::vector<std::string>& batch_sizes) {
    write_file(folder_ / "trainer.sh", R"(
      runs=0
      echo '{"started": true, "group": ""}'
      while read -r line; do
        case "$line" in
          *'"do":"prepare"'*) echo '{"ready": true, "address": ""}' ;;
          *'"do":"run"'*)
            runs=$((runs + 1))
            if [ $runs = 3 ] && grep -q '"batch-size":13' "${2#--plan=}"; then
              echo 'capstan: out of luck' >&2
              exit 1
            fi
            echo '{"step": 1, "of": 4}'
            [ $runs = 3 ] && grep -q '"batch-size":14' "${2#--plan=}" && read -r never
            printf '%s' '{"done": {"begin_ns": 0, "end_ns": 2000000000, "steps": 4, "samples": 128, "loss": 0.5,'
            echo '"bytes_pushed": 0, "bytes_pulled": 0, "hidden": null, "series": []}}' ;;
        esac
      done
    )");
    LabPlan plan{"mine", {}, {}, 2};
    for (const auto& size : batch_sizes) {
      auto resolved = resolve({{{"batch-size", size, ""}, {"ntrainer", "1", ""}, {"nserver", "0", ""}}},
                              registry_with("DdpTrainer"));
      plan.cases.push_back({"mine [batch_size=" + size + "]", std::move(resolved), {}});
    }
    return run_lab(plan, {{"/bin/sh", (folder_ / "trainer.sh").string()}, "capstan"}, stop_,
                   {[this](const auto& line) { progress_.push_back(line); },
                    [this](const auto& line) { messages_.push_back(line); }});
  }

  const TemporaryFolder folder_;
  Stop stop_;
  std::vector<std::string> progress_, messages_;
};

TEST_F(RunLab, AResultHasAllRuns) {
  const auto [result, code] = run({"32"});
  EXPECT_EQ(code, kSuccess);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.experiment, "mine");
  ASSERT_EQ(result.configurations.size(), 1u);
  ASSERT_EQ(result.configurations[0].runs.size(), 2u);
  EXPECT_DOUBLE_EQ(result.configurations[0].runs[0].samples_per_second, 64);
  EXPECT_FALSE(result.configurations[0].error);
  EXPECT_THAT(progress_, ElementsAre("mine [batch_size=32]  warm-up  step 1/4",
                                     "mine [batch_size=32]  run 1/2  step 1/4",
                                     "mine [batch_size=32]  run 2/2  step 1/4"));
  EXPECT_THAT(messages_, IsEmpty());
}

TEST_F(RunLab, AConfigurationThatFailsDoesNotEndTheOthers) {
  const auto [result, code] = run({"32", "13", "64"});
  EXPECT_EQ(code, kFailed);
  EXPECT_FALSE(result.ok);
  ASSERT_EQ(result.configurations.size(), 3u);
  EXPECT_FALSE(result.configurations[0].error);
  EXPECT_EQ(result.configurations[1].error, "trainer 0: out of luck");
  EXPECT_EQ(result.configurations[1].runs.size(), 1u);
  EXPECT_EQ(result.configurations[2].runs.size(), 2u);
  EXPECT_THAT(messages_, ElementsAre("mine [batch_size=13]: trainer 0: out of luck"));
  EXPECT_THAT(progress_, Contains("mine [batch_size=64] 3/3  run 2/2  step 1/4"));
}

TEST_F(RunLab, AStopRequestKeepsWhatWasMeasured) {
  stop_.wanted = [this] {
    return !progress_.empty() && progress_.back().starts_with("mine [batch_size=64]");
  };
  const auto [result, code] = run({"32", "64"});
  EXPECT_EQ(code, kInterrupted);
  ASSERT_EQ(result.configurations.size(), 1u);
  EXPECT_EQ(result.configurations[0].runs.size(), 2u);
}

TEST_F(RunLab, AStopRequestKeepsTheRunsOfItsConfiguration) {
  stop_.wanted = [this] {
    return !progress_.empty() && progress_.back().find("run 2/2") != std::string::npos;
  };
  const auto [result, code] = run({"14"});
  EXPECT_EQ(code, kInterrupted);
  EXPECT_FALSE(result.ok);
  ASSERT_EQ(result.configurations.size(), 1u);
  EXPECT_EQ(result.configurations[0].runs.size(), 1u);
  EXPECT_FALSE(result.configurations[0].error);
  EXPECT_THAT(messages_, IsEmpty());
}

TEST(Machine, IsDescribed) {
  const auto machine = this_machine();
  EXPECT_GE(machine.cores, 1u);
  EXPECT_GT(machine.memory_bytes, 100'000'000u);
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_EQ(these_versions()[0].first, "capstan");
  EXPECT_THAT(now_text(), ::testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

}  // namespace
}  // namespace capstan::lab
