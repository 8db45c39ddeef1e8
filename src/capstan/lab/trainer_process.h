#pragma once

#include <cstdint>

#include "capstan/lab/plan.h"
#include "capstan/lab/registry.h"

namespace capstan::lab {

// The whole of a trainer's process: runs as often as the launcher says (control.h). The token is in the
// environment. Throws UserError, Failure, or what a plug-in throws.
void run_trainer_process(const Plan& plan, const Registry& registry, std::uint32_t rank);

}  // namespace capstan::lab
