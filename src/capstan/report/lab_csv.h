#pragma once

#include <span>
#include <string>

#include "capstan/report/lab.h"

namespace capstan::report {

// A line of names, and one row for each configuration, run (from 1), rank and metric, as RFC 4180 has it but
// with plain line ends. The column `result` is the path of the file.
std::string lab_csv(std::span<const LabFile> files);

}  // namespace capstan::report
