#pragma once

#include <string>
#include <vector>

#include "capstan/lab/options.h"
#include "capstan/lab/registry.h"
#include "capstan/report/lab.h"

namespace capstan::lab {

// The plan that follows from given options.
struct Resolved {
  Plan plan;
  report::LabOptions options;      // all, as results have them
  std::string unsupported;         // what it needs and this build does not have, one line; empty: it can run
  std::vector<std::string> notes;  // one line each
};

// Applies defaults that depend on other options, resolves older names, and checks names and combinations.
// Throws UserError that names the option, its place, and what would be right.
Resolved resolve(const Layers& layers, const Registry& registry);

}  // namespace capstan::lab
