#include "capstan/report/lab_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

#include "lab_example.h"

namespace capstan::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<LabFile> two(const LabConfiguration& first, const LabConfiguration& later) {
  return {{"a", lab_result({first})}, {"b", lab_result({later})}};
}

LabDifference difference(std::initializer_list<double> first, std::initializer_list<double> later) {
  const auto files = two(lab_configuration(2, first), lab_configuration(2, later));
  return compare(files, false).differences.at(0);
}

std::string error_of(const std::vector<LabFile>& files) {
  try {
    (void)compare(files, false);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LabComparison, MarksOnlyWhatExceedsTheNoise) {
  const auto faster = difference({100, 102}, {110, 112});
  EXPECT_EQ(faster.first, 101);
  EXPECT_EQ(faster.later, 111);
  EXPECT_DOUBLE_EQ(faster.ratio, 111.0 / 101);
  EXPECT_DOUBLE_EQ(faster.interval->low, 110.0 / 102);
  EXPECT_DOUBLE_EQ(faster.interval->high, 112.0 / 100);
  EXPECT_EQ(faster.verdict, LabVerdict::kFaster);
  EXPECT_EQ(difference({110, 112}, {100, 102}).verdict, LabVerdict::kSlower);
  // The same means as above, but more noise.
  EXPECT_EQ(difference({80, 122}, {90, 132}).verdict, LabVerdict::kWithinNoise);
  EXPECT_EQ(difference({100, 100}, {100, 100}).verdict, LabVerdict::kWithinNoise);
}

TEST(LabComparison, NeedsTwoRunsOnEachSide) {
  for (const auto& d : {difference({100}, {200, 200}), difference({100, 100}, {200})}) {
    EXPECT_EQ(d.ratio, 2);
    EXPECT_FALSE(d.interval);
    EXPECT_EQ(d.verdict, LabVerdict::kTooFewRepeats);
  }
}

TEST(LabComparison, RefusesOtherMachinesAndVersions) {
  auto files = two(lab_configuration(2, {1, 1}), lab_configuration(2, {2, 2}));
  auto& other = files[1].result;
  other.machine = {"EPYC", 64, 50'600'000'000};
  other.versions[0].second = "0.2.0";
  other.versions.pop_back();
  const std::string problem =
      "b: measured on another machine or version than a: cpu EPYC instead of Xeon, cores 64 instead of 2, "
      "memory_bytes 50600000000 instead of 25300000000, capstan 0.2.0 instead of 0.1.0, protocol none "
      "instead "
      "of 7";
  EXPECT_EQ(error_of(files), problem + "; --force compares anyway");
  const auto forced = compare(files, true);
  EXPECT_THAT(forced.notes, ElementsAre(problem));
  ASSERT_EQ(forced.differences.size(), 1u);
  EXPECT_EQ(forced.differences[0].ratio, 2);
}

// A kernel reserves a little more or less of the memory.
TEST(LabComparison, IgnoresAHundredthOfTheMemory) {
  auto files = two(lab_configuration(2, {1, 1}), lab_configuration(2, {2, 2}));
  files[1].result.machine.memory_bytes = 25'100'000'000;
  EXPECT_EQ(error_of(files), "no error");
  files[1].result.machine.memory_bytes = 25'000'000'000;
  EXPECT_NE(error_of(files), "no error");
}

TEST(LabComparison, NotesWhatCannotBeCompared) {
  auto failed = lab_configuration(2, {});
  failed.error = "trainer 0 died";
  EXPECT_THAT(compare(two(lab_configuration(2, {1, 1}), failed), false).notes,
              ElementsAre("ddp_cpu_rpc [trainers=2]: no result in b: trainer 0 died"));
  EXPECT_THAT(compare(two(failed, failed), false).notes,
              ElementsAre("ddp_cpu_rpc [trainers=2]: no result in a: trainer 0 died",
                          "ddp_cpu_rpc [trainers=2]: no result in b: trainer 0 died"));
  EXPECT_THAT(compare(two(lab_configuration(2, {0, 0}), lab_configuration(2, {1, 1})), false).notes,
              ElementsAre("ddp_cpu_rpc [trainers=2]: no result in a"));
  const auto apart = compare(two(lab_configuration(1, {1, 1}), lab_configuration(2, {2, 2})), false);
  EXPECT_THAT(apart.differences, IsEmpty());
  EXPECT_THAT(apart.notes,
              ElementsAre("ddp_cpu_rpc [trainers=2]: only in b", "ddp_cpu_rpc [trainers=1]: not in b"));
}

TEST(LabComparison, NotesOtherOptions) {
  auto later = lab_configuration(2, {2, 2});
  later.options[0].second = std::int64_t{64};
  later.options.emplace_back("new", true);
  later.options.emplace_back("save", "elsewhere");  // does not say what was measured
  later.options.emplace_back("model_config_path", "a copy");
  const auto comparison = compare(two(lab_configuration(2, {1, 1}), later), false);
  EXPECT_EQ(comparison.differences.size(), 1u);
  EXPECT_THAT(comparison.notes, ElementsAre("ddp_cpu_rpc [trainers=2]: other options in b: batch_size 64 "
                                            "instead of 32, new true instead of none"));
}

TEST(LabComparison, IsAJsonObject) {
  const auto files = two(lab_configuration(2, {100, 100}), lab_configuration(2, {150, 150}));
  EXPECT_EQ(nlohmann::json::parse(json_line(json_of(compare(files, false)))),
            (nlohmann::json{{"differences",
                             {{{"configuration", "ddp_cpu_rpc [trainers=2]"},
                               {"path", "b"},
                               {"first_samples_per_second", 100.0},
                               {"samples_per_second", 150.0},
                               {"ratio", 1.5},
                               {"interval", {{"low", 1.5}, {"high", 1.5}}},
                               {"verdict", "faster"}}}},
                            {"notes", nlohmann::json::array()}}));
  const auto short_files = two(lab_configuration(2, {100}), lab_configuration(2, {150}));
  const auto json = nlohmann::json::parse(json_line(json_of(compare(short_files, false))));
  EXPECT_EQ(json["differences"][0]["interval"], nullptr);
  EXPECT_EQ(json["differences"][0]["verdict"], "not enough repeats to tell");
}

}  // namespace
}  // namespace capstan::report
