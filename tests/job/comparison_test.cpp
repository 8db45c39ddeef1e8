// Comparisons with runs provided by the test.

#include "capstan/job/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/base/failure.h"
#include "capstan/user_error.h"

#include "job/fakes.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Json = nlohmann::json;

namespace fs = std::filesystem;

std::string flag(const std::vector<std::string>& flags, const std::string& name) {
  for (const auto& word : flags)
    if (word.starts_with("--" + name + "=")) return word.substr(name.size() + 3);
  return {};
}

class ComparisonTest : public ::testing::Test {
 protected:
  // The files and output of a run: two epochs, of which the second reaches 0.75.
  TrainingOutcome train(const std::vector<std::string>& flags, bool quiet) {
    const bool rehearsal = std::ranges::find(flags, "--dry-run") != flags.end();
    EXPECT_EQ(quiet, rehearsal);
    const auto strategy = flag(flags, "strategy");
    if (rehearsal) {
      rehearsed_.push_back(strategy);
      return {0,
              R"({"ok":true,"config":"network = 'lenet'\ndataset = 'digits'\n","metrics":)"
              R"([{"name":"accuracy","better":"higher","percent":true},{"name":"loss","better":"lower"}]})",
              ""};
    }
    trained_.push_back(strategy);
    const fs::path run = flag(flags, "train-dir");
    fs::create_directories(run);
    testing::write_file(run / "config.toml", "network = 'lenet'\nworkers = 2\n");
    testing::write_file(run / "versions.json", R"({"capstan":"1"})");
    testing::write_file(
        run / "metrics.jsonl",
        R"({"kind":"evaluation","epoch":1,"step":1,"seconds":1,"samples":50,"test_loss":2,"test_accuracy":0.25})"
        "\n"
        R"({"kind":"evaluation","epoch":2,"step":2,"seconds":3,"samples":100,"test_loss":1,"test_accuracy":0.75})"
        "\n");
    const double rate = strategy == "single" ? 50 : 75;
    return {0,
            Json{{"ok", true},
                 {"seconds", 3},
                 {"samples_per_second", rate},
                 {"test_accuracy", 0.75},
                 {"test_loss", 1},
                 {"steps", 2},
                 {"epochs", 2}}
                .dump(),
            ""};
  }
  RunTraining trainings() {
    return [this](const auto& flags, bool quiet) { return train(flags, quiet); };
  }
  ComparisonOptions options(std::vector<std::string> strategies) const {
    return {std::move(strategies), {"--epochs=2"}, 0.5, folder_ / "all"};
  }

  const TemporaryFolder folder_;
  RecordedEvents events_;
  FakeStop stop_;
  const Environment environment_{events_, stop_};
  std::vector<std::string> rehearsed_, trained_;
};

TEST_F(ComparisonTest, RunsEachStrategyAndComparesThem) {
  const auto result = compare(options({"single", "sync"}), trainings(), environment_);
  EXPECT_THAT(rehearsed_, ElementsAre("single", "sync"));
  EXPECT_THAT(trained_, ElementsAre("single", "sync"));
  EXPECT_THAT(events_.messages(), ElementsAre("1 of 2: single", "2 of 2: sync"));
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.problem(), "");
  const auto json = Json::parse(result.json());
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["target"], 0.5);
  EXPECT_EQ(
      json["runs"][1],
      Json::parse(R"({"strategy":"sync","ok":true,"seconds":3.0,"samples_per_second":75.0,"speedup":1.5,
              "test_accuracy":0.75,"test_loss":1.0,"seconds_to_target":3.0,"staleness_mean":0.0,
              "staleness_max":0,"steps":2,"epochs":2.0,"run_dir":")" +
                  (folder_ / "all/sync").string() +
                  R"(","evaluations":[{"seconds":1.0,"samples":50.0,"test_accuracy":0.25,"test_loss":2.0},
              {"seconds":3.0,"samples":100.0,"test_accuracy":0.75,"test_loss":1.0}]})"));
  EXPECT_EQ(json["page"], (folder_ / "all/compare.html").string());
  EXPECT_THAT(testing::contents(result.page), HasSubstr("lenet"));
  EXPECT_THAT(result.text(), HasSubstr("1.50"));
  EXPECT_TRUE(result.text().ends_with("compare.html\n"));
}

TEST_F(ComparisonTest, WrongFlagsEndItBeforeAnyRun) {
  const RunTraining wrong = [this](const auto& flags, bool quiet) {
    if (flag(flags, "strategy") == "snyc")
      return TrainingOutcome{kWrongUsage, R"({"ok":false,"error":"did you mean sync?"})", ""};
    return train(flags, quiet);
  };
  EXPECT_THROW(
      {
        try {
          (void)compare(options({"sync", "snyc"}), wrong, environment_);
        } catch (const UserError& error) {
          EXPECT_STREQ(error.what(), "did you mean sync?");
          throw;
        }
      },
      UserError);
  EXPECT_TRUE(trained_.empty());
  EXPECT_FALSE(fs::exists(folder_ / "all"));
}

TEST_F(ComparisonTest, AFailedRunDoesNotAffectTheOthers) {
  const RunTraining failing = [this](const auto& flags, bool quiet) {
    if (!quiet && flag(flags, "strategy") == "sync")
      return TrainingOutcome{kLost, R"({"ok":false,"error":"server 0 is lost"})", "exit code 3"};
    if (!quiet && flag(flags, "strategy") == "async") return TrainingOutcome{137, "", "killed by signal 9"};
    return train(flags, quiet);
  };
  const auto result = compare(options({"sync", "async", "single"}), failing, environment_);
  EXPECT_EQ(result.problem(), "sync: failed: server 0 is lost");
  const auto json = Json::parse(result.json());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["runs"][1]["error"], "failed: ended without a result (killed by signal 9)");
  EXPECT_EQ(json["runs"][2]["ok"], true);
  EXPECT_THAT(events_.messages(), ::testing::Contains("sync failed: server 0 is lost"));
}

TEST_F(ComparisonTest, ATargetMustBeAValueOfTheMetric) {
  auto wrong = options({"single"});
  wrong.target = 97;
  EXPECT_THAT([&] { (void)compare(wrong, trainings(), environment_); },
              ::testing::ThrowsMessage<UserError>("--target 97: test accuracy is from 0 to 1"));
  EXPECT_TRUE(trained_.empty());
}

// A run that diverges has a result too, with a loss that is not a number.
TEST_F(ComparisonTest, ARunWithAResultAndAProblemHasFailed) {
  const RunTraining diverging = [this](const auto& flags, bool quiet) {
    auto outcome = train(flags, quiet);
    if (quiet) return outcome;
    auto result = Json::parse(outcome.output);
    result["ok"] = false;
    result["error"] = "training has diverged";
    result["test_loss"] = nullptr;
    return TrainingOutcome{kFailed, result.dump(), "exit code 1"};
  };
  const auto result = compare(options({"sync"}), diverging, environment_);
  EXPECT_EQ(result.problem(), "sync: failed: training has diverged");
  const auto json = Json::parse(result.json());
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["runs"][0]["ok"], false);
  EXPECT_EQ(json["runs"][0]["test_accuracy"], 0.75);
  EXPECT_EQ(json["runs"][0]["test_loss"], nullptr);
  EXPECT_THAT(events_.messages(), ::testing::Contains("sync failed: training has diverged"));
}

TEST_F(ComparisonTest, AnInterruptShowsPartialResults) {
  const RunTraining interrupted = [this](const auto& flags, bool quiet) {
    if (!quiet && flag(flags, "strategy") == "sync") stop_.request();
    return train(flags, quiet);
  };
  const auto result = compare(options({"single", "sync", "async"}), interrupted, environment_);
  EXPECT_TRUE(result.interrupted);
  const auto json = Json::parse(result.json());
  EXPECT_EQ(json["runs"][0]["ok"], true);
  EXPECT_EQ(json["runs"][1]["error"], "interrupted");
  EXPECT_EQ(json["runs"][1]["test_accuracy"], 0.75) << "of its last evaluation";
  EXPECT_EQ(json["runs"][2]["error"], "not run");
  EXPECT_TRUE(fs::exists(result.page));
}

TEST_F(ComparisonTest, AnInterruptBeforeAnyRunEndsIt) {
  stop_.request();
  EXPECT_THROW((void)compare(options({"sync"}), trainings(), environment_), Failure);
  EXPECT_TRUE(trained_.empty());
}

TEST_F(ComparisonTest, StrategiesWithGroupsHaveTheirOwnFolders) {
  (void)compare(options({"sync", "default=sync,fc*=async"}), trainings(), environment_);
  EXPECT_TRUE(fs::exists(folder_ / "all/2-default-sync-fc--async/config.toml"));
}

TEST(SplitStrategies, AtCommasOrWithGroupsAtSemicolons) {
  EXPECT_THAT(split_strategies("single,sync,batch:2"), ElementsAre("single", "sync", "batch:2"));
  EXPECT_THAT(split_strategies("sync;default=sync,fc*=async"), ElementsAre("sync", "default=sync,fc*=async"));
  const std::pair<const char*, const char*> wrong[] = {
      {"sync,", "--strategies sync,: a name is empty"},
      {"single,sync,single", "--strategies single,sync,single: single is named twice"},
      {"sync;sync", "--strategies sync;sync: sync is named twice"},
      {"sync,default=sync,fc*=async",
       "--strategies sync,default=sync,fc*=async: use semicolons between strategies if one has groups: "
       "\"sync;default=sync,fc*=async\""}};
  for (const auto& [text, says] : wrong) {
    try {
      (void)split_strategies(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), says);
    }
  }
}

}  // namespace
}  // namespace capstan::job
