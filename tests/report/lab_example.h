#pragma once

#include <initializer_list>

#include "capstan/report/lab.h"

// Lab results for tests, built from plain numbers.
namespace capstan::report {

// The statistics of 1, 2, 3 and 4 times `scale`, by hand.
inline metrics::Statistics four_values(double scale) {
  metrics::Statistics s;
  s.count = 4;
  s.min = scale;
  s.max = 4 * scale;
  s.mean = 2.5 * scale;
  s.variance = 5 * scale * scale / 3;
  s.stdev = 1.2909944487358056 * scale;
  s.p50 = 2.5 * scale;
  s.p95 = 3.85 * scale;
  s.p99 = 3.97 * scale;
  return s;
}

inline LabRun lab_run(double samples_per_second) {
  LabRun run;
  run.samples = 1024;
  run.steps = 32;
  run.samples_per_second = samples_per_second;
  run.seconds = 1024 / samples_per_second;
  run.loss = 6.9375;
  run.bytes = {37'800'000, 37'800'000};
  run.hidden_communication = 0.25;
  run.step = {1, 2, 4, 2, 1};
  for (const char* rank : {"trainer 0", "trainer 1", "all trainers"}) {
    run.metrics.push_back({rank, "forward_metric,forward_pass", "ms", four_values(2)});
    run.metrics.push_back({rank, "backward_metric,backward", "ms", four_values(4)});
  }
  run.metrics.push_back(
      {"server 2", "parameter_server_straggler_metric,param_index_straggler", "ms", four_values(0.5)});
  run.straggler_ms = {0.5, 1, 1.5, 2};
  return run;
}

inline LabConfiguration lab_configuration(std::int64_t trainers, std::initializer_list<double> throughputs) {
  LabConfiguration c;
  c.name = "ddp_cpu_rpc [trainers=" + std::to_string(trainers) + "]";
  c.options = {{"batch_size", std::int64_t{32}}, {"ddp_hook", "rpc_hook"},        {"lr", 1e-4},
               {"ntrainer", trainers},           {"server_config_path", nullptr}, {"use_cuda_rpc", false}};
  c.axis = {{"trainers", trainers}};
  for (const double t : throughputs) c.runs.push_back(lab_run(t));
  return c;
}

inline LabResult lab_result(std::vector<LabConfiguration> configurations) {
  LabResult r;
  r.when = "2024-05-06T07:08:09Z";
  r.versions = {{"capstan", "0.1.0"}, {"libtorch", "1.13.0"}, {"protocol", std::int64_t{7}}};
  r.machine = {"Xeon", 2, 25'300'000'000};
  r.experiment = "ddp_cpu_rpc";
  r.configurations = std::move(configurations);
  return r;
}

}  // namespace capstan::report
