#pragma once

#include <cstdint>
#include <string>

namespace capstan::optimizer {

// Learning-rate factor by version: linear warm-up over the first `warmup` updates ((v + 1) / warmup), then
//   constant          1
//   step:EVERY:GAMMA  GAMMA ^ floor((v - warmup) / EVERY)
//   cosine            (1 + cos(π·(v - warmup) / (total - warmup))) / 2, and 0 after `total`
struct Schedule {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;
  std::uint64_t warmup = 0;
  std::uint64_t total = 0;  // cosine: updates of the whole run
  std::uint64_t step_every = 0;
  double step_gamma = 0.1;

  double factor(std::uint64_t version) const;

  // "constant", "step:1000:0.1", "cosine". Throws UserError that lists the allowed forms.
  static Schedule parse(const std::string& text, std::uint64_t warmup, std::uint64_t total);
  std::string text() const;
};

}  // namespace capstan::optimizer
