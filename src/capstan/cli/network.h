#pragma once

#include "capstan/config/job_config.h"
#include "capstan/training/network.h"

namespace capstan::cli {

// The network that a job's flags ask for.
training::NetworkOptions network_options(const config::JobConfig& config);

}  // namespace capstan::cli
