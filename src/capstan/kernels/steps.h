#pragma once

#include <span>

namespace capstan::kernels {

// Fused optimizer steps by PyTorch's rules: one pass reads the gradient and updates weights and state. All
// arrays have the gradient's length and do not overlap. An element's result does not depend on its position.
// Thread-safe.
//
// Scalars are computed by the caller in double and rounded once. "g" below is the gradient.

// w += g
void add_step(std::span<const float> gradient, std::span<float> weights);

// w = keep·w + g
void blend_step(float keep, std::span<const float> gradient, std::span<float> weights);

// g += weight_decay·w; w -= lr·g
struct SgdStep {
  float lr;
  float weight_decay;
};
void sgd_step(const SgdStep& step, std::span<const float> gradient, std::span<float> weights);

// g += weight_decay·w; buffer = momentum·buffer + intake·g; w -= lr·buffer,
// or with nesterov w -= lr·(g + lookahead·buffer)
struct MomentumStep {
  float lr;
  float weight_decay;
  float momentum;   // 0 in the first step
  float intake;     // 1 - dampening; 1 in the first step
  float lookahead;  // the momentum, also in the first step
  bool nesterov;
};
void momentum_step(const MomentumStep& step, std::span<const float> gradient, std::span<float> weights,
                   float* buffer);

// g += weight_decay·w; w *= keep; m = beta1·m + intake1·g; v = beta2·v + intake2·g²;
// w -= lr·m / (√v·root_scale + eps)
struct AdamStep {
  float lr;            // learning rate / (1 - beta1^t)
  float weight_decay;  // adam; 0 for adamw
  float keep;          // adamw: 1 - learning rate·weight decay; 1 for adam
  float beta1;
  float intake1;  // 1 - beta1
  float beta2;
  float intake2;     // 1 - beta2
  float root_scale;  // 1 / √(1 - beta2^t)
  float eps;
};
void adam_step(const AdamStep& step, std::span<const float> gradient, std::span<float> weights, float* m,
               float* v);

// g += weight_decay·w; sum += g²; w -= lr·g / (√sum + eps)
struct AdagradStep {
  float lr;
  float weight_decay;
  float eps;
};
void adagrad_step(const AdagradStep& step, std::span<const float> gradient, std::span<float> weights,
                  float* sum);

// g += weight_decay·w; v = alpha·v + intake·g²; scaled = g / (√v + eps); w -= lr·scaled.
// With `mean` (centered): mean = alpha·mean + intake·g, and √(v - mean²) in place of √v.
// With `buffer`: buffer = momentum·buffer + scaled; w -= lr·buffer. Either may be null.
struct RmsPropStep {
  float lr;
  float weight_decay;
  float alpha;
  float intake;  // 1 - alpha
  float eps;
  float momentum;
};
void rmsprop_step(const RmsPropStep& step, std::span<const float> gradient, std::span<float> weights,
                  float* v, float* buffer, float* mean);

}  // namespace capstan::kernels
