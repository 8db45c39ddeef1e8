#pragma once

#include <string>

namespace capstan::job {

// The versions of this program and of its libraries, as the JSON text of a run's versions.json.
std::string versions();

}  // namespace capstan::job
