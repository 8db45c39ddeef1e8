// The whole client library.
#pragma once

#include "capstan/cxx20.h"

#include "capstan/join_options.h"
#include "capstan/layout.h"
#include "capstan/observer.h"
#include "capstan/status.h"
#include "capstan/user_error.h"
#include "capstan/version.h"
#include "capstan/worker.h"
