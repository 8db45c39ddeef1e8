#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/row_tensors.h"
#include "capstan/optimizer/schedule.h"

namespace capstan::optimizer {

enum class Kind { kNone, kSgd, kAdam, kAdamW, kAdagrad, kRmsProp, kSparseAdam };

// Names, defaults and meanings are PyTorch's, except SGD's lr and momentum. defaults()
// returns the values that differ between kinds; visit_options() lists the members.
struct Options {
  Kind kind = Kind::kSgd;
  double lr = 0.02;
  double weight_decay = 0;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double lr_decay = 0;
  double alpha = 0.99;
  bool centered = false;
};

// A set of kinds, one bit for each.
template <class... K>
constexpr std::uint32_t kinds(K... kind) {
  return (0u | ... | (1u << static_cast<std::uint32_t>(kind)));
}

// One option: its name in flags, configuration files and messages, and the kinds of optimizer that use it.
struct OptionInfo {
  std::string_view name;
  std::uint32_t owners;
  std::string_view help;
  constexpr bool belongs_to(Kind kind) const { return (owners & kinds(kind)) != 0; }
};

// The one list of options. Calls visit(info, member …) for each, with that member of every further argument:
// Options, or a struct whose members have the same names.
template <class Visit, class... S>
void visit_options(Visit&& visit, S&&... s) {
  constexpr auto kSgd = kinds(Kind::kSgd), kAdams = kinds(Kind::kAdam, Kind::kAdamW),
                 kAdagrad = kinds(Kind::kAdagrad), kRmsProp = kinds(Kind::kRmsProp),
                 kSparseAdam = kinds(Kind::kSparseAdam),
                 kDecays = kSgd | kAdams | kAdagrad | kRmsProp | kinds(Kind::kNone);
  visit(OptionInfo{"lr", kDecays | kSparseAdam,
                   "Learning rate (default: sgd 0.02, adam, adamw and sparse-adam 0.001, adagrad and rmsprop "
                   "0.01; multiplied by K "
                   "÷ workers where an update takes the pushes of K workers, as with async)"},
        s.lr...);
  visit(OptionInfo{"momentum", kSgd | kRmsProp, "sgd (default 0.9), rmsprop (default 0)"}, s.momentum...);
  visit(OptionInfo{"weight-decay", kDecays, "Weight decay (default 0; adamw 0.01)"}, s.weight_decay...);
  visit(OptionInfo{"dampening", kSgd, "sgd: dampening of momentum (default 0)"}, s.dampening...);
  visit(OptionInfo{"nesterov", kSgd, "sgd: Nesterov momentum"}, s.nesterov...);
  visit(OptionInfo{"beta1", kAdams | kSparseAdam, "adam, adamw, sparse-adam (default 0.9)"}, s.beta1...);
  visit(OptionInfo{"beta2", kAdams | kSparseAdam, "adam, adamw, sparse-adam (default 0.999)"}, s.beta2...);
  visit(OptionInfo{"eps", kAdams | kSparseAdam | kAdagrad | kRmsProp,
                   "adam, adamw, sparse-adam, rmsprop (default 1e-8), adagrad (default 1e-10)"},
        s.eps...);
  visit(OptionInfo{"alpha", kRmsProp, "rmsprop: smoothing (default 0.99)"}, s.alpha...);
  visit(OptionInfo{"lr-decay", kAdagrad, "adagrad (default 0)"}, s.lr_decay...);
  visit(OptionInfo{"centered", kRmsProp, "rmsprop: normalise by the variance"}, s.centered...);
}

// The names of a set of kinds: "sgd and rmsprop".
std::string names_of(std::uint32_t kinds);

// "sgd", "adam" …; parse_kind throws UserError that lists the known names.
std::string_view name(Kind kind);
Kind parse_kind(std::string_view text);
// PyTorch's defaults for this kind, lr included (sgd, none: 0.02).
Options defaults(Kind kind);
// The outer optimizer of servers that apply workers' weight changes: SGD with Nesterov momentum, plain SGD
// where `momentum` is 0.
Options outer(double rate, double momentum);
// Throws UserError that names the option, its value and the allowed values.
void validate(const Options& options);

// One worker's gradient and its factor in the merged gradient.
struct Contribution {
  const float* gradient = nullptr;
  float factor = 1;
  const float* base = nullptr;  // the weights it was computed on, where the update rule needs them
};

// One worker's gradient of a row tensor: it has some rows, and is zero elsewhere.
struct RowContribution {
  const float* gradient = nullptr;  // the shard's first element
  float factor = 1;
  std::span<const std::uint32_t> rows = {};  // sorted, each once
};

// Identifies an update: it makes version before + 1 of these weights, with the learning rate of version
// `scheduled`. The two differ where the weights are one group of several: the schedule follows the job's
// version.
struct UpdateIndex {
  Version before;
  Version scheduled;
  UpdateIndex(Version version) : before(version), scheduled(version) {}
  UpdateIndex(Version before_update, Version of_job) : before(before_update), scheduled(of_job) {}
};

// Applies merged gradients to weights. Immutable, so several threads may update different blocks at once.
class Optimizer {
 public:
  // Throws what validate() throws.
  Optimizer(const Options& options, const Schedule& schedule);

  const Options& options() const { return options_; }
  // Number of state arrays, each as long as the weights. Their order: sgd with momentum: buffer; the Adams:
  // m, v; adagrad: sum; rmsprop: v, then momentum buffer and mean where used.
  int state_tensors() const { return state_tensors_; }
  // PyTorch's names of the state arrays, for files.
  std::vector<std::string> state_names() const;

  // The learning rate with which version `before` becomes before + 1.
  double learning_rate(Version before) const;

  // Applies one update to one block in one pass: computes Σ factor·gradient in the order of the contributions
  // (at least one), then changes weights and state in place. `state` holds state_tensors() arrays as long as
  // `weights`, zero before the first update. Gradients point to the block's first element. An element's
  // result does not depend on how a shard is split into blocks. `rate` multiplies the learning rate.
  // Kind::kNone adds the merged gradient to the weights.
  void update(const UpdateIndex& index, std::span<float> weights, std::span<float* const> state,
              std::span<const Contribution> contributions, double rate = 1) const;

  // The same for some rows of a row tensor (sorted, each once): each is one block, with the contributions
  // that have it. Weights, state and gradients begin with the shard's first element. Other rows are neither
  // read nor written; so the result is that of zeros in their place only for kinds that check_rows() allows,
  // and sparse-adam's moments do not decay.
  void update_rows(const UpdateIndex& index, const RowPart& part, std::span<const std::uint32_t> rows,
                   float* weights, std::span<float* const> state,
                   std::span<const RowContribution> contributions, double rate = 1) const;

 private:
  // Calls run(step), where step(gradient, weights, state offset) updates one block.
  template <class Run>
  void with_step(const UpdateIndex& index, std::span<float* const> state, double rate, const Run& run) const;

  Options options_;
  Schedule schedule_;
  int state_tensors_ = 0;
};

}  // namespace capstan::optimizer
