#pragma once

#include "capstan/config/job_config.h"
#include "capstan/data/dataset.h"

namespace capstan::job {

// The dataset of a configuration. Needs no libtorch, because `bench data` is linked without it.
data::DatasetOptions dataset_options(const config::JobConfig& config);

}  // namespace capstan::job
