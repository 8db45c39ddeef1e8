#pragma once

#include "capstan/lab/registry.h"

namespace capstan::lab {

// Capstan's own plug-ins.
Registry builtin();

// They and those of a program. Throws UserError for a name that both have.
Registry with_builtin(const Registry& own);

}  // namespace capstan::lab
