#pragma once

#include "capstan/cxx20.h"

#include <string>
#include <vector>

namespace capstan {

// One phase of a step, such as the discriminator's in a GAN: one backward pass, and one update of the
// parameters that match its globs (* is any text, ? any character).
struct StepPhase {
  std::string name;
  std::vector<std::string> globs;
  friend bool operator==(const StepPhase&, const StepPhase&) = default;
};

}  // namespace capstan
