#pragma once

#include <cstdint>

#include "capstan/optimizer/optimizer.h"

namespace capstan::bench {

// The gradient of every element that a worker pushes at an iteration, counted from 0 including the warm-up: a
// small number that is exact in floating point. Sums of many stay small but are rarely zero, so that a
// missing update changes the final weights.
float wire_gradient(std::uint32_t worker, std::uint64_t iteration);

inline constexpr float kWireInitialWeight = 0.5f;

// One weight under an optimizer, in plain double arithmetic: the value of every element when all gradients
// are equal. Independent of the kernels, so that it detects their errors.
class ScalarReference {
 public:
  explicit ScalarReference(const optimizer::Options& options) : options_(options) {}
  double weight() const { return w_; }
  void step(double gradient);

 private:
  const optimizer::Options options_;
  double w_ = kWireInitialWeight;
  double a_ = 0, b_ = 0, c_ = 0;  // state, by optimizer
  std::uint64_t steps_ = 0;
};

}  // namespace capstan::bench
