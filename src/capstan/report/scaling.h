#pragma once

#include <string>
#include <vector>

#include "capstan/report/comparison.h"

namespace capstan::report {

// Throughput as a cluster grows, one curve per strategy.
struct Scaling {
  struct Point {
    double at = 0;  // so many workers, or servers
    double samples_per_second = 0;
    double efficiency = 0;  // of linear, 0 … 1
    double staleness_mean = 0;
    double dropped = 0;  // part of all pushes
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

// The curves on one plot, their efficiency on another, each verdict, and a table of each curve. Needs no
// network and no file beside it.
std::string scaling_page(const Scaling& scaling);

}  // namespace capstan::report
