#pragma once

#include <span>
#include <string>

#include "capstan/report/lab.h"
#include "capstan/report/lab_comparison.h"

namespace capstan::report {

// Lab results as one self-contained HTML page: throughput with intervals, where the time of a step goes,
// stragglers, scaling, and all tables. `comparison` is that of the same files; with one file it is empty.
std::string lab_page(std::span<const LabFile> files, const LabComparison& comparison);

}  // namespace capstan::report
