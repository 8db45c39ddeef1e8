#include "capstan/bench/scalar_reference.h"

#include <cmath>

namespace capstan::bench {

float wire_gradient(std::uint32_t worker, std::uint64_t iteration) {
  const int quick = static_cast<int>((worker * 7 + iteration * 3) % 11) - 5;
  const int slow = iteration % 1021 < 510 ? 1 : -1;
  return static_cast<float>(quick + slow) / 64.0f;
}

void ScalarReference::step(double g) {
  using optimizer::Kind;
  const auto& o = options_;
  ++steps_;
  const auto t = static_cast<double>(steps_);
  if (o.kind == Kind::kNone) {
    w_ += g;
    return;
  }
  if (o.kind == Kind::kAdamW) {
    w_ -= o.lr * o.weight_decay * w_;
  } else {
    g += o.weight_decay * w_;
  }
  switch (o.kind) {
    case Kind::kNone:
      break;
    case Kind::kSgd:
      if (o.momentum == 0) {
        w_ -= o.lr * g;
        break;
      }
      a_ = steps_ == 1 ? g : o.momentum * a_ + (1 - o.dampening) * g;
      w_ -= o.lr * (o.nesterov ? g + o.momentum * a_ : a_);
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
      a_ = o.beta1 * a_ + (1 - o.beta1) * g;
      b_ = o.beta2 * b_ + (1 - o.beta2) * g * g;
      w_ -= o.lr * (a_ / (1 - std::pow(o.beta1, t))) / (std::sqrt(b_ / (1 - std::pow(o.beta2, t))) + o.eps);
      break;
    case Kind::kSparseAdam:
      break;  // refused: the model of the benchmark is dense
    case Kind::kAdagrad:
      a_ += g * g;
      w_ -= o.lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(a_) + o.eps);
      break;
    case Kind::kRmsProp:
      a_ = o.alpha * a_ + (1 - o.alpha) * g * g;
      if (o.centered) b_ = o.alpha * b_ + (1 - o.alpha) * g;
      c_ = o.momentum * c_ + g / (std::sqrt(a_ - b_ * b_) + o.eps);
      w_ -= o.lr * c_;
      break;
  }
}

}  // namespace capstan::bench
