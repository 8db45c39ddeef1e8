#pragma once

#include <memory>

#include "capstan/data/dataset.h"
#include "capstan/lab/data.h"

namespace capstan::lab {

// The training samples of a dataset, for models of plug-ins.
std::unique_ptr<Data> make_dataset_data(data::Dataset dataset);

// The samples of a plug-in as a dataset, for Capstan's networks: inputs are floats, targets are classes or
// floats. Both splits are all samples. `data` must not be used elsewhere. Throws UserError for other samples.
data::Dataset make_plugin_dataset(std::unique_ptr<Data> data);

}  // namespace capstan::lab
