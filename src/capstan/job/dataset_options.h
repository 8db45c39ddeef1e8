#pragma once

#include "capstan/config/job_config.h"
#include "capstan/data/dataset.h"

namespace capstan::job {

// Which dataset a configuration asks for. Needs no libtorch, as `bench data` has none.
data::DatasetOptions dataset_options(const config::JobConfig& config);

}  // namespace capstan::job
