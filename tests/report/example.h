#pragma once

#include "capstan/report/comparison.h"

#include "support/evaluations.h"

namespace capstan::report {

// Three runs, one of which failed.
inline Comparison example() {
  Comparison c;
  c.metrics = testing::classification_metrics();
  c.target = 0.9;
  c.when = "2024-05-06 07:08";
  c.versions = {{"capstan", "0.1.0"}};
  Run single;
  single.strategy = "single";
  single.has_result = true;
  single.seconds = 20;
  single.samples_per_second = 1000;
  single.values = {0.95, 0.5, 1};
  single.points = {{10, 10000, {0.8, 1, 1}}, {20, 20000, {0.95, 0.5, 1}}};
  single.settings = {{"network", "lenet"}, {"dataset", "digits"}, {"strategy", "single"}, {"threads", "2"}};
  Run async = single;
  async.strategy = "async";
  async.seconds = 8;
  async.samples_per_second = 2500;
  async.values = {0.9, 0.5, 1};
  async.staleness_mean = 1.25;
  async.staleness_max = 7;
  async.points = {{4, 10000, {0.85, 1, 1}}, {8, 20000, {0.9, 0.5, 1}}};
  async.settings = {{"network", "lenet"}, {"dataset", "digits"}, {"strategy", "async"}, {"threads", "1"}};
  Run sync;
  sync.strategy = "sync";
  sync.problem =
      "failed: server 0 is lost (killed by signal 9): training cannot go on, whatever the others do";
  c.runs = {single, async, sync};
  return c;
}

}  // namespace capstan::report
