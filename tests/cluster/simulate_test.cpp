// `capstan simulate`, as a user runs it.

#include <sstream>

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

TEST(Simulate, PrintsAllOfAPredictionAsOneObject) {
  const Folder folder;
  // One worker: 0.1 s of computing, 2 × (1 ms + 4 MB at 100 MB/s), 5 × 4 MB at 1 GB/s.
  Program run(folder, {"simulate", "--json", "--strategy=sync,async", "--workers=1", "--model=bytes:4000000",
                       "--compute=0.1", "--bandwidth=100MB/s", "--latency=1ms", "--memory-rate=1GB/s",
                       "--batch-size=10", "--steps=20"});
  EXPECT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["cluster"]["bytes"], 4'000'000);
  EXPECT_EQ(result["cluster"]["bandwidth"], 1e8);
  ASSERT_EQ(result["predictions"].size(), 2u);
  for (const auto& p : result["predictions"]) {
    EXPECT_NEAR(p["samples_per_second"].get<double>(), 10 / 0.202, 1e-6);
    EXPECT_NEAR(p["scaling_efficiency"].get<double>(), 1, 1e-9);
    EXPECT_EQ(p["updates"], 20);
    EXPECT_EQ(p["bytes_pushed"], 80e6);
    double time = 0;
    for (const auto& part : p["worker_time"]) time += part.get<double>();
    EXPECT_NEAR(time, 1, 1e-9);
    for (const char* key :
         {"staleness_mean", "staleness_p50", "staleness_p99", "staleness_max", "staleness_histogram",
          "dropped_pushes", "bytes_pulled", "server_busy", "bottleneck", "bottleneck_text"})
      EXPECT_TRUE(p.contains(key)) << key;
  }
}

TEST(Simulate, FitsIntoEightyColumns) {
  const Folder folder;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--help"}, {"--failures=1/h"}, {"--cores=4"}, {"--sweep=workers=1..64"}}) {
    std::vector<std::string> flags = {"simulate",
                                      "--workers=16",
                                      "--servers=4",
                                      "--steps=30",
                                      "--strategy=sync,async,decoupled-diloco:500:4:0.25s,batch:3",
                                      "--compute=lognormal(0.2,0.5)",
                                      "--html=" + (folder / "page.html").string()};
    flags.insert(flags.end(), more.begin(), more.end());
    Program run(folder, flags);
    EXPECT_EQ(run.exit_code(), 0) << run.errors();
    std::istringstream lines(run.output());
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const auto columns = std::ranges::count_if(line, [](unsigned char c) { return (c & 0xc0) != 0x80; });
      EXPECT_LE(columns, 80) << line;
    }
    EXPECT_GT(count, 8) << run.output();
  }
  EXPECT_THAT(text_of(folder / "page.html"), HasSubstr("Chart"));
}

TEST(Simulate, WrongInputIsOneLineThatSaysWhatIsRight) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--strategy=synk"}, "unknown strategy \"synk\" (did you mean sync?)"},
      {{"--strategy=sync,sync"}, "sync is named twice"},
      {{"--strategy=single"}, "single has no servers to simulate"},
      {{"--strategy=default=sync,fc*=async"}, "groups of tensors are not simulated"},
      {{"--strategy=batch:9", "--workers=4"}, "K may be at most 4"},
      {{"--workers=0"}, "--workers 0: should be a whole number from 1 to 65536"},
      {{"--servers=5000"}, "should be a whole number from 1 to 4096"},
      {{"--model=resnet51"}, "did you mean resnet50?"},
      {{"--compute=lognormal(1)"}, "should be lognormal(median,sigma)"},
      {{"--compute=0"}, "must be above 0"},
      {{"--bandwidth=10"}, "should be a rate such as 10Gbps"},
      {{"--latency=5"}, "should be a time such as 50us"},
      {{"--failures=1"}, "such as 1/h"},
      {{"--failures=100/s"}, "before it can finish a round"},
      {{"--slow-worker=8:2x"}, "with a rank below 8"},
      {{"--cores=0"}, "should be a number from 0.01"},
      {{"--threads=2"}, "--threads needs --cores"},
      {{"--sweep=workers=4..1"}, "should be a range within 1 and 65536"},
      {{"--sweep=workers=1..2", "--html=/nowhere/page.html"}, "/nowhere/page.html: cannot be written"},
      {{"--calibrate=/nowhere"}, "/nowhere/metrics.jsonl: cannot be read"},
      {{"--worker=3"}, "did you mean --workers?"},
  };
  for (const auto& [flags, message] : cases) {
    const Folder folder;
    std::vector<std::string> arguments = {"simulate", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 2) << flags[0];
    EXPECT_EQ(run.json()["ok"], false) << flags[0];
    EXPECT_THAT(run.errors(), HasSubstr(message));
    const auto errors = run.errors();
    EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << errors;
  }
}

}  // namespace
}  // namespace capstan::testing
