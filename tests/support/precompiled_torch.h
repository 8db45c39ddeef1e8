// The same for tests of what uses libtorch.
#include "precompiled.h"

#include <ATen/ATen.h>
