#pragma once

#include "capstan/report/lab.h"

// Where a result was measured.
namespace capstan::lab {

// This machine: its CPU's name, cores that this process may use, memory.
report::LabMachine this_machine();
// Versions of this program and of its libraries, as in a run's versions.json.
report::LabOptions these_versions();
// The time in UTC, ISO 8601.
std::string now_text();

}  // namespace capstan::lab
