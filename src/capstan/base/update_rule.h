#pragma once

#include <cstdint>

namespace capstan {

// How the workers' merged contributions make one update of the weights w.
struct UpdateRule {
  enum class Kind : std::uint8_t {
    kStep,        // one optimizer step with their sum
    kCompensate,  // the same, each gradient g first corrected by strength·g²·(w - its base weights)
    kCompensateAdaptive,  // the same, with strength / √(mean of g²) in place of strength
    kMove,                // w = strength·w + their sum, without the optimizer
    kLast = kMove
  };
  Kind kind = Kind::kStep;
  double rate = 1;      // multiplies the learning rate
  double strength = 0;  // see Kind
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

}  // namespace capstan
