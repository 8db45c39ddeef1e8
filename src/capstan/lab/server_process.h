#pragma once

#include <cstdint>

#include "capstan/lab/plan.h"
#include "capstan/lab/registry.h"

namespace capstan::lab {

// The whole of a server's process (control.h); `index` counts the servers from 0. The token is in the
// environment. Throws UserError, Failure, or what a plug-in throws.
void run_server_process(const Plan& plan, const Registry& registry, std::uint32_t index);

}  // namespace capstan::lab
