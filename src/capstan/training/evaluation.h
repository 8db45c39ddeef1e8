#pragma once

#include <cstdint>

namespace capstan::training {

// A model's results on a whole test set.
struct Evaluation {
  double loss = 0;      // mean cross-entropy
  double accuracy = 0;  // top-1, 0 … 1
  double top5 = 0;      // top-5 accuracy, 0 … 1
  std::uint64_t samples = 0;
};

}  // namespace capstan::training
