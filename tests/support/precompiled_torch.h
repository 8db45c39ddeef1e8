// The same for tests that use libtorch.
#include <ATen/ATen.h>

#include "precompiled.h"
