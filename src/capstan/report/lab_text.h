#pragma once

#include <string>

#include "capstan/report/lab.h"
#include "capstan/report/lab_comparison.h"

// Lab results for a terminal; at most 80 columns wide.
namespace capstan::report {

// What was measured, the throughput of each configuration, and where the time of a step goes.
std::string lab_summary(const LabResult& result);
// A table of metrics for every rank, from each configuration's run with the median throughput.
std::string lab_metrics(const LabResult& result);
// The differences between the first result and a later one, and the notes.
std::string lab_differences(const LabComparison& comparison, const std::string& first_path);

}  // namespace capstan::report
