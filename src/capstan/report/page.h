#pragma once

#include <string>

#include "capstan/report/comparison.h"

namespace capstan::report {

// The comparison as one HTML page: test accuracy over time and over samples, the table, the job and what it
// ran on. Needs no network and no file beside it.
std::string page(const Comparison& comparison);

}  // namespace capstan::report
