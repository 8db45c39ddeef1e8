#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "capstan/report/comparison.h"
#include "capstan/report/lab.h"
#include "capstan/report/lab_comparison.h"

// Lab results as tables, for the terminal and for the page.
namespace capstan::report {

// Throughput of each configuration with its interval over the runs, communication hidden, bytes.
Table throughput_table(const LabResult& result);
// Where the time of a mean step goes, in per cent; without configurations that failed.
Table step_table(const LabResult& result);
// The names of metrics without their types, unless a name of a result has several types.
class MetricTitles {
 public:
  void add(const LabResult& result);
  std::string title(const std::string& metric) const;

 private:
  std::map<std::string, std::set<std::string>> types_;  // by name
};
// The metrics of one rank, sorted by type and name. The first nine columns fit a terminal.
Table metrics_table(const LabRun& run, const std::string& rank, const MetricTitles& titles);
// The configurations of one later result against the first.
Table difference_table(const LabComparison& comparison, const std::string& path);
// The later results that have something to compare, in their order.
std::vector<std::string> compared_paths(const LabComparison& comparison);

// The ranks of a run, in the order of its metrics.
std::vector<std::string> ranks_of(const LabRun& run);

// "capstan 0.1.0, libtorch 1.13.0" and "Xeon, 2 cores, 25.3 GB".
std::string versions_text(const LabResult& result);
std::string machine_text(const LabMachine& machine);

}  // namespace capstan::report
