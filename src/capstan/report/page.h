#pragma once

#include <string>

#include "capstan/report/comparison.h"

namespace capstan::report {

// The comparison as one self-contained HTML page: test accuracy over time and over samples, the table, the
// job, hardware and software.
std::string page(const Comparison& comparison);

}  // namespace capstan::report
