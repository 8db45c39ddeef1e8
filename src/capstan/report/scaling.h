#pragma once

#include <string>
#include <vector>

#include "capstan/report/comparison.h"

namespace capstan::report {

// Throughput by cluster size, one curve per strategy.
struct Scaling {
  struct Point {
    double at = 0;  // number of workers or servers
    double samples_per_second = 0;
    double efficiency = 0;  // relative to linear, 0 … 1
    double staleness_mean = 0;
    double dropped = 0;  // fraction of all pushes
    std::string bottleneck;
  };
  struct Curve {
    std::string strategy;
    std::vector<Point> points;
    std::string verdict;  // one sentence
  };
  std::string title;
  std::string axis;  // "workers"
  std::vector<Curve> curves;
  Settings settings;  // the cluster
};

// One self-contained HTML page: plots of throughput and efficiency, each verdict, and a table of each curve.
std::string scaling_page(const Scaling& scaling);

}  // namespace capstan::report
