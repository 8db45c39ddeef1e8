#pragma once

#include "capstan/lab/plan_draft.h"

namespace capstan::lab {

// Resolves what is trained: checks the strategy's options, the model, the data and the criterion. After
// resolve_processes(). Throws UserError.
void resolve_work(PlanDraft& draft);

}  // namespace capstan::lab
