#include "capstan/report/lab_text.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/report/columns.h"
#include "capstan/report/lab_csv.h"

#include "lab_example.h"

namespace capstan::report {
namespace {

using ::testing::HasSubstr;

void expect_80_columns(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width(line), 80u) << line;
}

// A step has 10 ms: 1, 2, 4, 2 and 1.
TEST(LabText, SummarisesEveryConfiguration) {
  auto failed = lab_configuration(4, {});
  failed.error = "trainer 3 was killed by signal 9 and its last line was: out of memory in bucket 2";
  const auto text =
      lab_summary(lab_result({lab_configuration(1, {100.5}), lab_configuration(2, {190, 210}), failed}));
  EXPECT_EQ(text,
            "ddp_cpu_rpc, 2024-05-06T07:08:09Z\n"
            "Xeon, 2 cores, 25.3 GB\n"
            "capstan 0.1.0, libtorch 1.13.0, protocol 7\n"
            "\n"
            "configuration                runs samples/s 95 % interval hidden  pushed    loss\n"
            "trainers=1                      1     100.5             —   25 % 37.8 MB   6.938\n"
            "trainers=2                      2     200.0   190.0–210.0   25 % 37.8 MB   6.938\n"
            "trainers=4                   failed: trainer 3 was killed by signal 9 and its\n"
            "                             last line was: out of memory in bucket 2\n"
            "\n"
            "a step's time, %               data forward backward communic. optimizer step ms\n"
            "trainers=1                     10.0    20.0     40.0      20.0      10.0   10.00\n"
            "trainers=2                     10.0    20.0     40.0      20.0      10.0   10.00\n");
  expect_80_columns(text);
}

TEST(LabText, ShowsWhatWasNotMeasured) {
  auto c = lab_configuration(1, {100});
  c.runs[0].hidden_communication.reset();
  c.runs[0].loss.reset();
  c.runs[0].step = {};
  const auto text = lab_summary(lab_result({c}));
  EXPECT_THAT(text,
              HasSubstr("trainers=1                      1     100.0             —      — 37.8 MB     NaN"));
  EXPECT_THAT(text,
              HasSubstr("trainers=1                        —       —        —         —         —       0"));
}

TEST(LabText, HasATableForEveryRank) {
  auto c = lab_configuration(2, {210, 190, 200});
  c.runs[2].metrics[0].statistics = four_values(1000);
  const auto text = lab_metrics(lab_result({c, lab_configuration(4, {})}));
  EXPECT_EQ(text,
            "ddp_cpu_rpc [trainers=2]: run 3 of 3, the one with the median throughput\n"
            "\n"
            "metrics for trainer 0\n"
            "name                       unit  count    min   mean    p50    p95    p99    max\n"
            "backward                     ms      4  4.000  10.00  10.00  15.40  15.88  16.00\n"
            "forward_pass                 ms      4   1000   2500   2500   3850   3970   4000\n"
            "\n"
            "metrics for trainer 1\n"
            "name                       unit  count    min   mean    p50    p95    p99    max\n"
            "backward                     ms      4  4.000  10.00  10.00  15.40  15.88  16.00\n"
            "forward_pass                 ms      4  2.000  5.000  5.000  7.700  7.940  8.000\n"
            "\n"
            "metrics for all trainers\n"
            "name                       unit  count    min   mean    p50    p95    p99    max\n"
            "backward                     ms      4  4.000  10.00  10.00  15.40  15.88  16.00\n"
            "forward_pass                 ms      4  2.000  5.000  5.000  7.700  7.940  8.000\n"
            "\n"
            "metrics for server 2\n"
            "name                       unit  count    min   mean    p50    p95    p99    max\n"
            "param_index_straggler        ms      4 0.5000  1.250  1.250  1.925  1.985  2.000\n");
  expect_80_columns(text);
}

TEST(LabText, ShowsTheTypeOfAMetricWhoseNameIsNotUnique) {
  auto c = lab_configuration(2, {200});
  c.runs[0].metrics = {{"trainer 0", "hook_c10d_metric,gloo_sparse_allreduce", "ms", four_values(1)},
                       {"trainer 0", "data_metric,data_wait", "ms", four_values(1)}};
  auto other = lab_configuration(4, {200});  // the same name with another type
  other.runs[0].metrics = {
      {"trainer 0", "hook_future_metric,gloo_sparse_allreduce", "bytes", four_values(1e6)}};
  other.runs[0].metrics[0].statistics.count = 12'345'678;
  const auto text = lab_metrics(lab_result({c, other}));
  EXPECT_THAT(text, HasSubstr("\ndata_wait                    ms      4  1.000  2.500"));
  EXPECT_THAT(text, HasSubstr("hook_c10d_metric,gloo_sparse_allreduce\n"
                              "                             ms      4  1.000  2.500"));
  EXPECT_THAT(text, HasSubstr("hook_future_metric,gloo_sparse_allreduce\n"
                              "                          bytes  12.3M   1.0M   2.5M"));
  expect_80_columns(text);
}

TEST(LabText, ALongNameHasALineOfItsOwn) {
  auto c = lab_configuration(2, {200, 200});
  c.name = "ddp_cpu_rpc [trainers=2 server=AverageBatchParameterServer]";
  const std::vector<LabFile> files = {{"a", lab_result({c})}, {"b", lab_result({c})}};
  const auto text = lab_summary(files[0].result) + lab_differences(compare(files, false), "a");
  const std::string name = "trainers=2 server=AverageBatchParameterServer\n";
  EXPECT_THAT(text, HasSubstr(name + "                                2     200.0"));
  EXPECT_THAT(text, HasSubstr(name + "                               10.0    20.0"));
  EXPECT_THAT(text,
              HasSubstr(name + "                              200.0   200.0  1.000   1.000–1.000 within"));
  c.name = std::string(200, 'x');
  c.runs.clear();
  c.error = "failed";
  expect_80_columns(text + lab_summary(lab_result({c})));
}

TEST(LabText, ShowsDifferencesWithTheirNoise) {
  const std::vector<LabFile> files = {
      {"before", lab_result({lab_configuration(1, {100, 100}), lab_configuration(2, {200, 210}),
                             lab_configuration(4, {300}), lab_configuration(8, {1, 1})})},
      {"after", lab_result({lab_configuration(1, {125, 150}), lab_configuration(2, {199, 209}),
                            lab_configuration(4, {330, 330})})}};
  const auto text = lab_differences(compare(files, false), files[0].path);
  EXPECT_EQ(text,
            "after against before, samples/s\n"
            "configuration                 first   later  ratio 95 % interval verdict\n"
            "trainers=1                    100.0   137.5  1.375   1.250–1.500 faster\n"
            "trainers=2                    205.0   204.0  0.995   0.948–1.045 within noise\n"
            "trainers=4                    300.0   330.0  1.100 not enough repeats to tell\n"
            "ddp_cpu_rpc [trainers=8]: not in after\n");
  expect_80_columns(text);
}

TEST(LabCsv, HasARowForEveryMetricOfEveryRun) {
  auto c = lab_configuration(2, {256, 512});
  c.name = "a \"b\", c";
  for (auto& run : c.runs) run.metrics.resize(1);
  c.runs[1].loss.reset();
  c.runs[1].metrics[0].statistics.variance.reset();
  c.runs[1].metrics[0].statistics.stdev.reset();
  const std::vector<LabFile> files = {{"x/lab.json", lab_result({c})}};
  EXPECT_EQ(
      lab_csv(files),
      "result,experiment,configuration,run,seconds,steps,samples_per_second,rank,name,unit,count,min,max,"
      "mean,variance,stdev,p50,p95,p99,samples,loss,hidden_communication,bytes_pushed,bytes_pulled,data_ms,"
      "forward_ms,backward_ms,communication_ms,optimizer_ms\n"
      "x/lab.json,ddp_cpu_rpc,\"a \"\"b\"\", "
      "c\",1,4,32,256,run,,,,,,,,,,,,1024,6.9375,0.25,37800000,37800000,1,"
      "2,4,2,1\n"
      "x/lab.json,ddp_cpu_rpc,\"a \"\"b\"\", c\",1,4,32,256,trainer 0,\"forward_metric,forward_pass\",ms,"
      "4,2,8,5,6.666666666666667,2.581988897471611,5,7.7,7.94,,,,,,,,,,\n"
      "x/lab.json,ddp_cpu_rpc,\"a \"\"b\"\", "
      "c\",2,2,32,512,run,,,,,,,,,,,,1024,,0.25,37800000,37800000,1,2,4,2,"
      "1\n"
      "x/lab.json,ddp_cpu_rpc,\"a \"\"b\"\", c\",2,2,32,512,trainer 0,\"forward_metric,forward_pass\",ms,"
      "4,2,8,5,,,5,7.7,7.94,,,,,,,,,,\n");
}

}  // namespace
}  // namespace capstan::report
