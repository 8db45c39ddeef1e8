#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/optimizer/schedule.h"

namespace capstan::optimizer {

enum class Kind { kNone, kSgd, kAdam, kAdamW, kAdagrad, kRmsProp };

// Names, defaults and meanings are PyTorch's, except lr, which has no default there for SGD.
struct Options {
  Kind kind = Kind::kSgd;
  double lr = 0.02;
  double weight_decay = 0;
  double momentum = 0;    // sgd, rmsprop
  double dampening = 0;   // sgd
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // adam, adamw
  double beta2 = 0.999;   // adam, adamw
  double eps = 1e-8;      // adam, adamw, adagrad (1e-10 there), rmsprop
  double lr_decay = 0;    // adagrad
  double alpha = 0.99;    // rmsprop
  bool centered = false;  // rmsprop
};

// "sgd", "adam" …; parse throws UserError with the known names.
std::string_view name(Kind kind);
Kind parse_kind(std::string_view text);
// PyTorch's defaults for this kind, lr included (sgd, none: 0.02).
Options defaults(Kind kind);
// Gradient descent with Nesterov's momentum, or without any: for servers that make steps of workers' deltas.
Options outer(double rate, double momentum);
// Throws UserError that names the option, its value and what would be right.
void validate(const Options& options);

// One worker's gradient and how much of it counts.
struct Contribution {
  const float* gradient = nullptr;
  float factor = 1;
  const float* base = nullptr;  // the weights it was computed on, where that matters
};

// Which update it is: the one that makes version before + 1 of these weights, at the learning rate of version
// `scheduled`. They differ where the weights are one group of several, and the schedule is the job's.
struct UpdateIndex {
  Version before;
  Version scheduled;
  UpdateIndex(Version version) : before(version), scheduled(version) {}
  UpdateIndex(Version before_update, Version of_job) : before(before_update), scheduled(of_job) {}
};

// The rule by which merged gradients change weights. Immutable, so any number of threads may update
// different blocks at once.
class Optimizer {
 public:
  // Throws what validate() throws.
  Optimizer(const Options& options, const Schedule& schedule);

  const Options& options() const { return options_; }
  // Floats of state per weight, in this order: sgd with momentum: buffer; adam, adamw: m, v; adagrad: sum;
  // rmsprop: v, then momentum buffer and mean where used.
  int state_tensors() const { return state_tensors_; }
  // PyTorch's names of them, for files.
  std::vector<std::string> state_names() const;

  // The learning rate with which version `before` becomes before + 1.
  double learning_rate(Version before) const;

  // Applies one update to one block in one pass: merges Σ factor·gradient in the
  // order given (at least one contribution), then changes weights and state in place. `state` holds
  // state_tensors() arrays as long as `weights`; zero before the first update. Contribution gradients point
  // at the block's first element. The result for an element does not depend on how a shard is cut into
  // blocks. `rate` multiplies the learning rate of this update. `kNone` adds the merged contribution to the
  // weights.
  void update(const UpdateIndex& index, std::span<float> weights, std::span<float* const> state,
              std::span<const Contribution> contributions, double rate = 1) const;

 private:
  Options options_;
  Schedule schedule_;
  int state_tensors_ = 0;
};

}  // namespace capstan::optimizer
