#pragma once

#include <cstdint>

#include "capstan/optimizer/optimizer.h"

namespace capstan::bench {

// The gradient of every element that a worker hands in at an iteration, counted from 0 with the warm-up:
// one small number that binary floating point holds exactly. Sums of many stay small but are rarely zero, so
// that an update which did not happen is missed in the end.
float wire_gradient(std::uint32_t worker, std::uint64_t iteration);

inline constexpr float kWireInitialWeight = 0.5f;

// One weight under an optimizer, in plain double arithmetic: what every element must be when all its
// gradients are equal. Written apart from the kernels, so that it can tell when they are wrong.
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
