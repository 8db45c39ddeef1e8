#pragma once

#include <cstdint>

namespace capstan::training {

// How good a model is on a whole test set.
struct Evaluation {
  double loss = 0;      // mean cross-entropy
  double accuracy = 0;  // top-1, 0 … 1
  double top5 = 0;      // the label is among the five likeliest
  std::uint64_t samples = 0;
};

}  // namespace capstan::training
