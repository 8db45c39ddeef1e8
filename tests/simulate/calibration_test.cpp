#include "capstan/simulate/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/simulate/simulation.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::simulate {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;

// One worker, 100 updates of 20 samples in 12 s: 0.1 s of computing and 0.02 s for the exchange of 4 MB.
constexpr const char* kResult =
    R"({"ok":true,"network":"lenet","strategy":"sync","workers":1,"optimizer":"sgd","steps":100,"seconds":12.0,)"
    R"("samples_per_second":166.66666666666667,"bytes_pushed":400000000,"bytes_pulled":400000000,)"
    R"("compute_seconds":9.5,"communication_seconds":2.0,"data_seconds":0.5,"resumed_from":0})";
constexpr const char* kConfig = "strategy = 'sync'\nbatch-size = 20\nthreads = 2\n";

void write_run(const TemporaryFolder& folder, const std::string& result,
               const std::string& config = kConfig) {
  write_file(folder / "metrics.jsonl", "{\"kind\":\"progress\",\"step\":1}\nno json\n" + result + "\n");
  write_file(folder / "config.toml", config);
}

TEST(Calibration, TakesTheTimesOfOneWorker) {
  const TemporaryFolder folder;
  write_run(folder, kResult);
  const auto c = Calibration::read(folder.path());
  EXPECT_EQ(c.network, "lenet");
  EXPECT_EQ(c.batch, 20u);
  EXPECT_EQ(c.threads, 2);
  EXPECT_NEAR(c.compute, 0.1, 1e-12);
  EXPECT_NEAR(c.exchange, 0.02, 1e-12);
  EXPECT_EQ(c.elements, 1'000'000u);
}

// A run without --threads has the derived value.
TEST(Calibration, TakesDerivedValuesOfTheRun) {
  const TemporaryFolder folder;
  write_run(folder, kResult,
            "strategy = 'sync'\nbatch-size = 20\n\n[derived]\nthreads = 3\nbatch-size = 7\n");
  const auto c = Calibration::read(folder.path());
  EXPECT_EQ(c.batch, 20u);
  EXPECT_EQ(c.threads, 3);
}

TEST(Calibration, TakesARunWithGroupsOfTensors) {
  const TemporaryFolder folder;
  std::string result = kResult;
  result.replace(result.find("\"sync\""), 6, "\"default=sync,fc*=async\"");
  write_run(folder, result);
  EXPECT_NEAR(Calibration::read(folder.path()).exchange, 0.02, 1e-12);
}

TEST(Calibration, PredictsItsOwnRun) {
  const TemporaryFolder folder;
  write_run(folder, kResult);
  const auto calibration = Calibration::read(folder.path());
  // With a memory rate at which an update takes less than the exchange, and one at which it takes more.
  for (const double rate : {10e9, 1e9, 1e8}) {
    Cluster c;
    c.elements = calibration.elements;
    c.batch = calibration.batch;
    c.compute = Distribution::constant(calibration.compute);
    c.memory_rate = rate;
    c.machine = SharedMachine{2, 2, 0};
    calibration.set_exchange(c);
    const auto p = simulate(c, strategy::parse("sync", 1));
    EXPECT_NEAR(p.samples_per_second, calibration.samples_per_second, 1e-3) << rate;
    EXPECT_GE(c.memory_rate, rate);
  }
}

TEST(Calibration, TakesOnlyTheComputeTimeOfSeveralWorkers) {
  const TemporaryFolder folder;
  std::string result = kResult;
  result.replace(result.find("\"workers\":1"), 11, "\"workers\":2");
  write_run(folder, result);
  const auto c = Calibration::read(folder.path());
  EXPECT_NEAR(c.compute, 0.2, 1e-12);  // each computed half of the batches in that time
  EXPECT_EQ(c.exchange, 0);
  EXPECT_EQ(c.elements, 0u);
}

TEST(Calibration, LastBatchesMayBeSmaller) {
  const TemporaryFolder folder;
  std::string result = kResult;
  // 1990 samples in 100 updates: the same time per sample.
  result.replace(result.find("166.66666666666667"), 18, "165.83333333333334");
  write_run(folder, result);
  EXPECT_NEAR(Calibration::read(folder.path()).compute, 10.0 / 1990 * 20, 1e-9);
}

std::string error_of(const std::filesystem::path& run) {
  try {
    Calibration::read(run);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Calibration, ReportsMissingValuesOfARun) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(folder / "nothing"), HasSubstr("nothing/metrics.jsonl: cannot be read"));
  write_run(folder, "{\"kind\":\"progress\"}");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("has no result: the run did not end"));
  write_run(folder, kResult, "batch-size = 20\n");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("config.toml: has no threads"));
  write_run(folder, kResult, "batch-size = = 20\n");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("config.toml: cannot be read"));
  write_run(folder, R"({"compute_seconds":1,"network":"lenet"})");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("the result has no strategy"));
  std::string result = kResult;
  result.replace(result.find("\"seconds\":12.0"), 14, "\"seconds\":null");
  write_run(folder, result);
  EXPECT_THAT(error_of(folder.path()), HasSubstr("the result has no seconds"));
}

// Without the errors a division by zero would become a prediction.
TEST(Calibration, ReportsARunThatDidNothing) {
  const TemporaryFolder folder;
  const auto error_with = [&](const std::vector<std::pair<std::string, std::string>>& values) {
    std::string result = kResult;
    for (const auto& [before, now] : values) {
      const auto at = result.find(before);
      EXPECT_NE(at, std::string::npos) << before;
      result.replace(at, before.size(), now);
    }
    write_run(folder, result);
    return error_of(folder.path());
  };
  const auto file = "--calibrate: " + (folder / "metrics.jsonl").string() + ": ";
  EXPECT_EQ(error_with({{"166.66666666666667", "0"}}), file + "the run has trained nothing");
  EXPECT_EQ(error_with({{"\"seconds\":12.0", "\"seconds\":0"}}), file + "the run has trained nothing");
  EXPECT_EQ(error_with({{"\"compute_seconds\":9.5", "\"compute_seconds\":0"},
                        {"\"data_seconds\":0.5", "\"data_seconds\":0"}}),
            file + "the run has computed nothing");
  EXPECT_EQ(error_with({{"\"workers\":1", "\"workers\":0"}}), file + "the result has no workers");
}

}  // namespace
}  // namespace capstan::simulate
