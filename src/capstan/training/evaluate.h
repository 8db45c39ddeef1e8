#pragma once

#include <cstddef>

#include "capstan/data/image_source.h"
#include "capstan/models/model.h"
#include "capstan/training/evaluation.h"

namespace capstan::training {

// Runs the model, as its parameters are bound, over a whole source in evaluation mode; leaves it in training
// mode. `batch` 0: as many samples at once as suit their size.
Evaluation evaluate(models::Model& model, const data::ImageSource& source, unsigned loader_threads = 1,
                    std::size_t batch = 0);

}  // namespace capstan::training
