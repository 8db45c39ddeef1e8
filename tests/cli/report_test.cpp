#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/cli/commands.h"

#include "report/lab_example.h"
#include "support/temporary_folder.h"

namespace capstan::cli {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int code;
  std::string out, error;
};

Outcome run(const Arguments& arguments) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_command({"report", run_report}, arguments);
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

// A folder with results of three runs, before and after a change that made them a quarter faster.
class Report : public ::testing::Test {
 protected:
  Report() {
    write("before", report::lab_result({report::lab_configuration(2, {100, 101, 102})}));
    write("after", report::lab_result({report::lab_configuration(2, {125, 126, 127})}));
    auto other = report::lab_result({report::lab_configuration(2, {400})});
    other.machine.cpu = "EPYC";
    write("elsewhere", other);
  }
  void write(const std::string& name, const report::LabResult& result) {
    std::filesystem::create_directory(folder_ / name);
    write_file(folder_ / (name + "/lab.json"), json_line(report::lab_json(result)));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(Report, ShowsOneResultWithItsMetrics) {
  const auto shown = run({path("before")});
  EXPECT_EQ(shown.code, kSuccess);
  EXPECT_THAT(shown.out, HasSubstr("trainers=2                      3     101.0"));
  EXPECT_THAT(shown.out, HasSubstr("metrics for trainer 1\n"));
  EXPECT_EQ(run({path("before/lab.json")}).out, shown.out);
}

TEST_F(Report, ComparesTwo) {
  const auto shown = run({path("before"), path("after")});
  EXPECT_EQ(shown.code, kSuccess);
  EXPECT_THAT(shown.out, HasSubstr("trainers=2                    101.0   126.0  1.248"));
  EXPECT_THAT(shown.out, HasSubstr(" faster\n"));
  EXPECT_THAT(shown.out, Not(HasSubstr("metrics for")));
}

TEST_F(Report, PrintsOneJsonObject) {
  const auto shown = run({path("before"), path("after"), "--json"});
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["ok"], true);
  ASSERT_EQ(json["results"].size(), 2u);
  EXPECT_EQ(json["results"][1]["path"], path("after"));
  EXPECT_EQ(json["results"][1]["result"], nlohmann::json::parse(contents(folder_ / "after/lab.json")));
  EXPECT_EQ(json["comparison"]["differences"][0]["verdict"], "faster");
}

TEST_F(Report, WritesCsvAndAPage) {
  const auto shown =
      run({path("before"), path("after"), "--csv", path("all.csv"), "--html", path("page.html")});
  EXPECT_EQ(shown.code, kSuccess);
  const auto csv = contents(folder_ / "all.csv");
  EXPECT_THAT(csv, StartsWith("result,experiment,"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 3 * (1 + 7));  // files, runs and metrics of a run
  EXPECT_THAT(contents(folder_ / "page.html"), StartsWith("<!doctype html>"));
  const auto refused = run({path("before"), "--csv", path("no/such/folder.csv")});
  EXPECT_EQ(refused.code, kWrongUsage);
  EXPECT_EQ(refused.error,
            "capstan: --csv: cannot create " + path("no/such/folder.csv") + ": No such file or directory\n");
}

TEST_F(Report, NeverOverwritesItsInput) {
  const auto before = contents(folder_ / "before/lab.json");
  for (const char* flag : {"--csv", "--html"}) {
    const auto refused = run({path("before/lab.json"), flag, path("before/lab.json")});
    EXPECT_EQ(refused.code, kWrongUsage);
    EXPECT_THAT(refused.error, HasSubstr("is read by this command, too"));
  }
  // Also if the folder is given.
  EXPECT_EQ(run({path("before"), "--csv", path("before/lab.json")}).code, kWrongUsage);
  EXPECT_EQ(contents(folder_ / "before/lab.json"), before);
}

TEST_F(Report, RefusesAnotherMachineWithoutForce) {
  const auto refused = run({path("before"), path("elsewhere")});
  EXPECT_EQ(refused.code, kWrongUsage);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.error, "capstan: " + path("elsewhere") +
                               ": measured on another machine or version than " + path("before") +
                               ": cpu EPYC instead of Xeon; --force compares anyway\n");
  const auto forced = run({path("before"), path("elsewhere"), "--force"});
  EXPECT_EQ(forced.code, kSuccess);
  EXPECT_THAT(forced.out, HasSubstr("not enough repeats to tell\n"));
  EXPECT_THAT(forced.out, HasSubstr("cpu EPYC instead of"));
}

TEST_F(Report, RefusesBadInputWithOneLine) {
  std::filesystem::create_directory(folder_ / "empty");
  const auto text = contents(folder_ / "before/lab.json");
  write_file(folder_ / "truncated", text.substr(0, text.size() / 2));
  write_file(folder_ / "other", "{}");
  for (const char* name : {"missing", "empty", "truncated", "other"}) {
    const auto refused = run({path("before"), path(name)});
    EXPECT_EQ(refused.code, kWrongUsage) << name;
    EXPECT_EQ(refused.out, "") << name;
    EXPECT_EQ(std::ranges::count(refused.error, '\n'), 1) << refused.error;
    EXPECT_THAT(refused.error, StartsWith("capstan: " + path(name)));
  }
  EXPECT_EQ(run({}).error, "capstan: PATH is required (see capstan report --help)\n");
}

}  // namespace
}  // namespace capstan::cli
