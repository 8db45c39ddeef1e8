#pragma once

#include "capstan/lab/plan_draft.h"

namespace capstan::lab {

// Resolves trainer, hook, numbers of processes, and server, and checks that they fit each other. Throws
// UserError.
void resolve_processes(PlanDraft& draft);

}  // namespace capstan::lab
