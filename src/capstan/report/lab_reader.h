#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "capstan/report/lab.h"

namespace capstan::report {

// Every key must be there with a value of its type, and no other key. Throws UserError with `file`, the place
// in it, and what is allowed there.
LabResult read_lab(const nlohmann::json& json, const std::string& file);

}  // namespace capstan::report
