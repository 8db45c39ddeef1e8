#include "capstan/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "capstan/base/check.h"
#include "capstan/kernels/steps.h"
#include "capstan/kernels/weighted_sum.h"

namespace capstan::optimizer {
namespace {

// Elements merged at a time: the sum stays in L1 between merge and step.
constexpr std::size_t kBlock = 1024;

int count_state(const Options& o) {
  switch (o.kind) {
    case Kind::kNone:
      return 0;
    case Kind::kSgd:
      return o.momentum != 0 ? 1 : 0;
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kSparseAdam:
      return 2;
    case Kind::kAdagrad:
      return 1;
    case Kind::kRmsProp:
      return 1 + (o.momentum != 0 ? 1 : 0) + (o.centered ? 1 : 0);
  }
  return 0;
}

float rounded(double x) {
  return static_cast<float>(x);
}

// Calls step(offset, gradient) for consecutive blocks of the merged gradient.
template <class Step>
void merge_and(const Step& step, std::size_t count, std::span<const kernels::Term> terms) {
  if (terms.size() == 1 && terms[0].factor == 1) return step(0, std::span(terms[0].values, count));
  alignas(64) float merged[kBlock];
  for (std::size_t offset = 0; offset < count; offset += kBlock) {
    const std::span<float> piece(merged, std::min(kBlock, count - offset));
    kernels::weighted_sum(terms, offset, piece);
    step(offset, piece);
  }
}

kernels::MomentumStep momentum_step(const Options& o, double lr, bool first) {
  return {.lr = rounded(lr),
          .weight_decay = rounded(o.weight_decay),
          .momentum = first ? 0 : rounded(o.momentum),
          .intake = first ? 1 : rounded(1 - o.dampening),
          .lookahead = rounded(o.momentum),
          .nesterov = o.nesterov};
}

kernels::AdamStep adam_step(const Options& o, double lr, Version before) {
  const auto t = static_cast<double>(before.value + 1);
  const bool decoupled = o.kind == Kind::kAdamW;
  return {.lr = rounded(lr / (1 - std::pow(o.beta1, t))),
          .weight_decay = decoupled ? 0 : rounded(o.weight_decay),
          .keep = decoupled ? rounded(1 - lr * o.weight_decay) : 1,
          .beta1 = rounded(o.beta1),
          .intake1 = rounded(1 - o.beta1),
          .beta2 = rounded(o.beta2),
          .intake2 = rounded(1 - o.beta2),
          .root_scale = rounded(1 / std::sqrt(1 - std::pow(o.beta2, t))),
          .eps = rounded(o.eps)};
}

// PyTorch's SparseAdam: m += (1 - beta1)·(g - m) and v alike; its eps is added before the bias correction
// of √v.
kernels::AdamStep sparse_adam_step(const Options& o, double lr, Version before) {
  auto step = adam_step(o, lr, before);
  const auto t = static_cast<double>(before.value + 1);
  step.lr = rounded(lr * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t)));
  step.root_scale = 1;
  return step;
}

kernels::AdagradStep adagrad_step(const Options& o, double lr, Version before) {
  return {.lr = rounded(lr / (1 + static_cast<double>(before.value) * o.lr_decay)),
          .weight_decay = rounded(o.weight_decay),
          .eps = rounded(o.eps)};
}

kernels::RmsPropStep rmsprop_step(const Options& o, double lr) {
  return {.lr = rounded(lr),
          .weight_decay = rounded(o.weight_decay),
          .alpha = rounded(o.alpha),
          .intake = rounded(1 - o.alpha),
          .eps = rounded(o.eps),
          .momentum = rounded(o.momentum)};
}

}  // namespace

Optimizer::Optimizer(const Options& options, const Schedule& schedule)
    : options_(options), schedule_(schedule), state_tensors_(count_state(options)) {
  validate(options);
}

std::vector<std::string> Optimizer::state_names() const {
  std::vector<std::string> names;
  switch (options_.kind) {
    case Kind::kNone:
      break;
    case Kind::kSgd:
      names = {"momentum_buffer"};
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kSparseAdam:
      names = {"exp_avg", "exp_avg_sq"};
      break;
    case Kind::kAdagrad:
      names = {"sum"};
      break;
    case Kind::kRmsProp:
      names = {"square_avg"};
      if (options_.momentum > 0) names.push_back("momentum_buffer");
      if (options_.centered) names.push_back("grad_avg");
      break;
  }
  names.resize(static_cast<std::size_t>(state_tensors_));  // sgd without momentum has none
  return names;
}

double Optimizer::learning_rate(Version before) const {
  return options_.lr * schedule_.factor(before.value);
}

template <class Run>
void Optimizer::with_step(const UpdateIndex& index, std::span<float* const> state, double rate,
                          const Run& run) const {
  CAPSTAN_CHECK(state.size() == static_cast<std::size_t>(state_tensors_),
                "there are state_tensors() state arrays");
  const auto before = index.before;
  const double lr = rate * learning_rate(index.scheduled);
  switch (options_.kind) {
    case Kind::kNone:
      return run([](auto g, auto w, auto) { kernels::add_step(g, w); });
    case Kind::kSgd: {
      if (state.empty()) {
        const kernels::SgdStep step{.lr = rounded(lr), .weight_decay = rounded(options_.weight_decay)};
        return run([&](auto g, auto w, auto) { kernels::sgd_step(step, g, w); });
      }
      const auto step = momentum_step(options_, lr, before.value == 0);
      return run([&](auto g, auto w, auto at) { kernels::momentum_step(step, g, w, state[0] + at); });
    }
    case Kind::kAdam:
    case Kind::kAdamW: {
      const auto step = adam_step(options_, lr, before);
      return run(
          [&](auto g, auto w, auto at) { kernels::adam_step(step, g, w, state[0] + at, state[1] + at); });
    }
    case Kind::kSparseAdam: {
      const auto step = sparse_adam_step(options_, lr, before);
      return run(
          [&](auto g, auto w, auto at) { kernels::adam_step(step, g, w, state[0] + at, state[1] + at); });
    }
    case Kind::kAdagrad: {
      const auto step = adagrad_step(options_, lr, before);
      return run([&](auto g, auto w, auto at) { kernels::adagrad_step(step, g, w, state[0] + at); });
    }
    case Kind::kRmsProp: {
      const auto step = rmsprop_step(options_, lr);
      float* const buffer = options_.momentum != 0 ? state[1] : nullptr;
      float* const mean = options_.centered ? state.back() : nullptr;
      return run([&](auto g, auto w, auto at) {
        kernels::rmsprop_step(step, g, w, state[0] + at, buffer ? buffer + at : nullptr,
                              mean ? mean + at : nullptr);
      });
    }
  }
}

void Optimizer::update(const UpdateIndex& index, std::span<float> weights, std::span<float* const> state,
                       std::span<const Contribution> contributions, double rate) const {
  CAPSTAN_CHECK(!contributions.empty(), "an update has at least one contribution");
  const kernels::Term first{contributions[0].gradient, contributions[0].factor};
  std::vector<kernels::Term> several;  // not for a single one: small models are updated often
  for (std::size_t i = 0; contributions.size() > 1 && i < contributions.size(); ++i)
    several.push_back({contributions[i].gradient, contributions[i].factor});
  const auto terms = several.empty() ? std::span(&first, 1) : std::span<const kernels::Term>(several);
  with_step(index, state, rate, [&](const auto& step) {
    merge_and(
        [&](std::size_t offset, std::span<const float> gradient) {
          step(gradient, weights.subspan(offset, gradient.size()), offset);
        },
        weights.size(), terms);
  });
}

void Optimizer::update_rows(const UpdateIndex& index, const RowPart& part,
                            std::span<const std::uint32_t> rows, float* weights,
                            std::span<float* const> state, std::span<const RowContribution> contributions,
                            double rate) const {
  if (rows.empty()) return;
  // The rest of each contribution's rows: those before the current row are done.
  std::vector<std::span<const std::uint32_t>> rest;
  for (const auto& c : contributions)
    rest.push_back(c.rows.subspan(
        static_cast<std::size_t>(std::ranges::lower_bound(c.rows, rows.front()) - c.rows.begin())));
  std::vector<kernels::Term> having;
  having.reserve(contributions.size());
  with_step(index, state, rate, [&](const auto& step) {
    for (const auto row : rows) {
      const auto range = part.elements(row);
      having.clear();
      for (std::size_t i = 0; i < rest.size(); ++i) {
        if (rest[i].empty() || rest[i].front() != row) continue;
        rest[i] = rest[i].subspan(1);
        having.push_back({contributions[i].gradient + range.begin, contributions[i].factor});
      }
      CAPSTAN_CHECK(!having.empty(), "every row is in a contribution");
      merge_and(
          [&](std::size_t offset, std::span<const float> gradient) {
            const auto at = range.begin + offset;
            step(gradient, std::span(weights + at, gradient.size()), at);
          },
          range.size(), having);
    }
  });
}

}  // namespace capstan::optimizer
