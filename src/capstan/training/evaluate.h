#pragma once

#include <cstdint>

#include "capstan/data/image_source.h"
#include "capstan/models/model.h"

namespace capstan::training {

struct Evaluation {
  double loss = 0;      // mean cross-entropy
  double accuracy = 0;  // top-1, 0 … 1
  double top5 = 0;      // the label is among the five likeliest
  std::uint64_t samples = 0;
};

// Runs the model, as its parameters are bound, over a whole source in evaluation mode; leaves it in training
// mode. `batch` 0: as many samples at once as suit their size.
Evaluation evaluate(models::Model& model, const data::ImageSource& source, unsigned loader_threads = 1,
                    std::size_t batch = 0);

}  // namespace capstan::training
