#include "capstan/report/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/report/result_file.h"
#include "capstan/user_error.h"

#include "lab_example.h"
#include "support/temporary_folder.h"

namespace capstan::report {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The file format, written by hand.
constexpr const char* kFile = R"({"kind":"capstan-lab","schema":1,"ok":true,"when":"2024-05-06T07:08:09Z",
  "versions":{"capstan":"0.1.0","libtorch":"1.13.0","protocol":7},
  "machine":{"cpu":"Xeon","cores":2,"memory_bytes":25300000000},
  "experiment":"ddp_cpu_rpc","configurations":[
    {"name":"ddp_cpu_rpc [trainers=2]",
     "options":{"batch_size":32,"ddp_hook":"rpc_hook","lr":0.0001,"ntrainer":2,"server_config_path":null,
                "use_cuda_rpc":false},
     "axis":{"trainers":2},
     "runs":[{"seconds":4,"steps":32,"samples":1024,"samples_per_second":256,"loss":null,
       "bytes":{"pushed":37800000,"pulled":37700000},"hidden_communication":0.43,
       "step":{"data":1,"forward":2,"backward":4,"communication":2.5,"optimizer":0.5},
       "metrics":[{"rank":"trainer 0","name":"forward_metric,forward_pass","unit":"ms","count":16,"min":1.5,
                   "max":9,"mean":2,"variance":0.25,"stdev":0.5,"p50":1.75,"p95":8,"p99":8.5}],
       "straggler_ms":[0.5,1]}],
     "error":null},
    {"name":"other","options":{},"axis":{},"runs":[],"error":"trainer 1 died"}]})";

LabResult by_hand() {
  auto c = lab_configuration(2, {256});
  auto& run = c.runs[0];
  run.loss.reset();
  run.bytes.pulled = 37'700'000;
  run.hidden_communication = 0.43;
  run.step = {1, 2, 4, 2.5, 0.5};
  run.metrics = {
      {"trainer 0", "forward_metric,forward_pass", "ms", {16, 1.5, 9, 2, 0.25, 0.5, 1.75, 8, 8.5}}};
  run.straggler_ms = {0.5, 1};
  LabConfiguration other;
  other.name = "other";
  other.error = "trainer 1 died";
  return lab_result({c, other});
}

LabResult read(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "lab.json", text);
  return read_result(folder.path()).result;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    (void)read_result(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// The message for a file with this text, after the file's name.
std::string error_of_text(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder / "lab.json";
  write_file(file, text);
  const auto error = error_of(folder.path());
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_THAT(error, StartsWith(file.string()));
  return error.substr(std::min(error.size(), file.string().size()));
}

// The message after a change of the file.
std::string error_after(const std::string& pointer, const nlohmann::json& value) {
  auto json = nlohmann::json::parse(kFile);
  json[nlohmann::json::json_pointer(pointer)] = value;
  return error_of_text(json.dump());
}

TEST(LabResult, IsWrittenAsTheFormatSays) {
  EXPECT_EQ(nlohmann::json::parse(json_line(lab_json(by_hand()))), nlohmann::json::parse(kFile));
}

TEST(LabResult, IsReadAsTheFormatSays) {
  const auto result = read(kFile);
  EXPECT_TRUE(result.ok);
  EXPECT_EQ(result.when, "2024-05-06T07:08:09Z");
  EXPECT_EQ(result.experiment, "ddp_cpu_rpc");
  EXPECT_EQ(result.machine.cpu, "Xeon");
  EXPECT_EQ(result.machine.cores, 2u);
  EXPECT_EQ(result.machine.memory_bytes, 25'300'000'000u);
  EXPECT_EQ(result.versions, by_hand().versions);
  ASSERT_EQ(result.configurations.size(), 2u);
  const auto& c = result.configurations[0];
  EXPECT_EQ(c.name, "ddp_cpu_rpc [trainers=2]");
  EXPECT_EQ(c.options, by_hand().configurations[0].options);
  EXPECT_EQ(c.axis, (LabOptions{{"trainers", std::int64_t{2}}}));
  EXPECT_FALSE(c.error);
  ASSERT_EQ(c.runs.size(), 1u);
  const auto& run = c.runs[0];
  EXPECT_EQ(run.seconds, 4);
  EXPECT_EQ(run.steps, 32u);
  EXPECT_EQ(run.samples, 1024u);
  EXPECT_EQ(run.samples_per_second, 256);
  EXPECT_FALSE(run.loss);
  EXPECT_EQ(run.bytes.pushed, 37'800'000u);
  EXPECT_EQ(run.bytes.pulled, 37'700'000u);
  EXPECT_EQ(run.hidden_communication, 0.43);
  EXPECT_EQ(run.step.communication, 2.5);
  EXPECT_EQ(run.step.sum(), 10);
  ASSERT_EQ(run.metrics.size(), 1u);
  EXPECT_EQ(run.metrics[0].name, "forward_metric,forward_pass");
  EXPECT_EQ(run.metrics[0].statistics.count, 16u);
  EXPECT_EQ(run.metrics[0].statistics.variance, 0.25);
  EXPECT_EQ(run.metrics[0].statistics.p99, 8.5);
  EXPECT_EQ(run.straggler_ms, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(result.configurations[1].error, "trainer 1 died");
}

TEST(LabResult, RefusesWrongValuesWithTheirPlace) {
  EXPECT_EQ(error_after("/machine/cores", "two"), ": machine.cores should be a whole number of at least 0");
  EXPECT_EQ(error_after("/machine/cores", -1), ": machine.cores should be a whole number of at least 0");
  EXPECT_EQ(error_after("/ok", 1), ": ok should be true or false");
  EXPECT_EQ(error_after("/configurations", 1), ": configurations should be a list");
  EXPECT_EQ(error_after("/configurations/0/runs/0/seconds", nullptr),
            ": configurations[0].runs[0].seconds should be a number of at least 0");
  EXPECT_EQ(error_after("/configurations/0/runs/0/loss", "NaN"),
            ": configurations[0].runs[0].loss should be a number or null");
  EXPECT_EQ(error_after("/configurations/0/runs/0/metrics/0/p50", -1),
            ": configurations[0].runs[0].metrics[0].p50 should be a number of at least 0");
  EXPECT_EQ(error_after("/configurations/0/runs/0/step", 7),
            ": configurations[0].runs[0].step should be an object");
  EXPECT_EQ(error_after("/configurations/0/name", "a\nb"),
            ": configurations[0].name should be one line of text");
  EXPECT_EQ(error_after("/configurations/0/options/hook", {1, 2}),
            ": configurations[0].options.hook should be one line of text");
  EXPECT_EQ(error_after("/configurations/1/name", "ddp_cpu_rpc [trainers=2]"),
            ": two configurations are named \"ddp_cpu_rpc [trainers=2]\"; names must differ");
}

TEST(LabResult, RefusesMissingAndUnknownKeys) {
  EXPECT_EQ(error_after("/extra\n", 1), ": the result has an unknown key \"extra\\n\"");
  EXPECT_EQ(error_after("/configurations/0/runs/0/step/kind", 1),
            ": configurations[0].runs[0].step has an unknown key \"kind\"");
  auto json = nlohmann::json::parse(kFile);
  json["configurations"][0]["runs"][0]["bytes"].erase("pulled");
  EXPECT_EQ(error_of_text(json.dump()), ": configurations[0].runs[0].bytes has no \"pulled\"");
  json = nlohmann::json::parse(kFile);
  json.erase("experiment");
  EXPECT_EQ(error_of_text(json.dump()), ": the result has no \"experiment\"");
}

TEST(ResultFile, RefusesOtherFiles) {
  EXPECT_EQ(error_of_text(""), " is empty: was it written completely?");
  EXPECT_EQ(error_of_text(R"({"kind":"capstan-lab","sch)"),
            ": not valid JSON at byte 27 of 26: was it written completely?");
  EXPECT_EQ(error_of_text("[1e999]"), ": not valid JSON: has a number that is out of range");
  EXPECT_EQ(error_of_text("[1, 2]"), ": has no \"kind\"; a result of capstan bench ps has \"capstan-lab\"");
  EXPECT_EQ(error_of_text(R"({"ok":true})"),
            ": has no \"kind\"; a result of capstan bench ps has \"capstan-lab\"");
  EXPECT_EQ(error_of_text(R"({"kind":"capstan-suite"})"),
            " is a result of kind \"capstan-suite\"; capstan report shows results of capstan bench ps only");
  EXPECT_EQ(error_after("/schema", 2), ": a lab result with schema 2; this version reads schema 1");
  EXPECT_EQ(error_after("/schema", "1\n"),
            ": a lab result with schema \"1\\n\"; this version reads schema 1");
  EXPECT_EQ(error_of_text(R"({"kind":"capstan-lab"})"),
            ": a lab result with schema none; this version reads schema 1");
}

TEST(ResultFile, RefusesFoldersWithoutAResult) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(folder / "none"), (folder / "none").string() + " does not exist");
  EXPECT_EQ(error_of(folder.path()),
            folder.path().string() + " has no lab.json, which capstan bench ps writes");
  write_file(folder / "metrics.jsonl", "{}");
  EXPECT_EQ(error_of(folder.path()),
            folder.path().string() +
                " is the folder of a training run; capstan report shows results of capstan bench ps only");
  std::filesystem::create_directory(folder / "lab.json");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("cannot read"));
}

TEST(ResultFile, MayHaveAnyName) {
  const TemporaryFolder folder;
  write_file(folder / "before.txt", kFile);
  const auto file = read_result(folder / "before.txt");
  EXPECT_EQ(file.path, (folder / "before.txt").string());
  EXPECT_EQ(file.result.experiment, "ddp_cpu_rpc");
}

TEST(LabConfiguration, HasMeansAndAMedianRun) {
  auto c = lab_configuration(2, {300, 100, 200});
  c.runs[2].step.forward = 5;
  EXPECT_EQ(mean_throughput(c), 200);
  EXPECT_DOUBLE_EQ(mean_step(c).forward, 3);
  EXPECT_EQ(median_run(c), 2u);
  EXPECT_EQ(median_run(lab_configuration(2, {300, 100})), 1u);
  EXPECT_EQ(median_run(lab_configuration(2, {300})), 0u);
  const auto result = lab_result({});
  EXPECT_EQ(short_name(result, c), "trainers=2");
  c.name = "sync";
  EXPECT_EQ(short_name(result, c), "sync");
}

}  // namespace
}  // namespace capstan::report
