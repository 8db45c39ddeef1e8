#pragma once

#include <span>
#include <string>

#include "capstan/base/json.h"
#include "capstan/report/lab.h"

// What the plots of a lab page show.
namespace capstan::report {

// `data` has
// "bars": throughput with its interval, and the parts of a step, of every configuration with runs;
// "straggler": percentages in common bins, null if no run has values;
// "scaling": throughput by the number of trainers with the ideal line, null unless that number varies.
struct LabCharts {
  Json data;
  std::size_t bars = 0;
  bool has_straggler = false, has_scaling = false;
};
LabCharts lab_charts(std::span<const LabFile> files);

// The letter of the n-th result, for configurations of several results: A, B … Z, then a number.
std::string result_letter(std::size_t index);
// The name of a configuration in plots and tables.
std::string chart_label(std::span<const LabFile> files, std::size_t file,
                        const LabConfiguration& configuration);

}  // namespace capstan::report
