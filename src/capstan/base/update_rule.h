#pragma once

#include <cstdint>

namespace capstan {

// What is done with the merged contributions of workers to make one update of the weights w.
struct UpdateRule {
  enum class Kind : std::uint8_t {
    kStep,        // a step of the optimizer with their sum
    kCompensate,  // the same, each gradient g first corrected by strength·g²·(w - what it was made on)
    kCompensateAdaptive,  // the same, with strength / √(mean of g²) in place of strength
    kMove,                // w = strength·w + their sum; the optimizer has no part in it
    kLast = kMove
  };
  Kind kind = Kind::kStep;
  double rate = 1;      // what the learning rate is multiplied by
  double strength = 0;  // as above
  friend bool operator==(const UpdateRule&, const UpdateRule&) = default;
};

}  // namespace capstan
