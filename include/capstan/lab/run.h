#pragma once

#include "capstan/cxx20.h"

#include "capstan/lab/registry.h"

namespace capstan::lab {

// The whole of a program that is `capstan bench ps` with plug-ins of its own, beside those of Capstan. The
// program starts itself as trainers and servers, so call this first in main(), and pass its result on.
int run(int argc, char** argv, const Registry& registry);

}  // namespace capstan::lab
