#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/optimizer/optimizer.h"
#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

// In the order of Kind.
constexpr std::array<std::string_view, 7> kNames = {"none",    "sgd",     "adam",       "adamw",
                                                    "adagrad", "rmsprop", "sparse-adam"};

[[noreturn]] void reject(const Options& o, std::string_view option, double value, std::string_view right) {
  throw UserError(fmt::format("optimizer {}: {} is {}, must be {}", name(o.kind), option, value, right));
}

// The checks reject NaN too: every comparison with it is false.
void at_least_zero(const Options& o, std::string_view option, double value) {
  if (!(value >= 0 && std::isfinite(value))) reject(o, option, value, "finite and not below 0");
}

void from_zero_below_one(const Options& o, std::string_view option, double value) {
  if (!(value >= 0 && value < 1)) reject(o, option, value, "at least 0 and below 1");
}

void validate_sgd(const Options& o) {
  from_zero_below_one(o, "momentum", o.momentum);
  if (!(o.dampening >= 0 && o.dampening <= 1)) reject(o, "dampening", o.dampening, "from 0 to 1");
  if (o.nesterov && o.momentum == 0) reject(o, "momentum", o.momentum, "above 0 with nesterov");
  if (o.nesterov && o.dampening != 0) reject(o, "dampening", o.dampening, "0 with nesterov");
}

}  // namespace

std::string_view name(Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::string names_of(std::uint32_t kinds) {
  std::vector<std::string_view> found;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if ((kinds & 1u << i) != 0) found.push_back(kNames[i]);
  if (found.size() < 2) return std::string(found.empty() ? "" : found[0]);
  return fmt::format("{} and {}", fmt::join(found.begin(), found.end() - 1, ", "), found.back());
}

Kind parse_kind(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<Kind>(i);
  const std::string meant = nearest(text, kNames);
  throw UserError(fmt::format("unknown optimizer '{}'{}; known are {}", text,
                              meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant),
                              fmt::join(kNames, ", ")));
}

Options defaults(Kind kind) {
  Options o{.kind = kind};
  switch (kind) {
    case Kind::kNone:
    case Kind::kSgd:
      break;
    case Kind::kAdam:
    case Kind::kSparseAdam:
      o.lr = 1e-3;
      break;
    case Kind::kAdamW:
      o.lr = 1e-3;
      o.weight_decay = 1e-2;
      break;
    case Kind::kAdagrad:
      o.lr = 1e-2;
      o.eps = 1e-10;
      break;
    case Kind::kRmsProp:
      o.lr = 1e-2;
      break;
  }
  return o;
}

Options outer(double rate, double momentum) {
  Options o{.kind = Kind::kSgd};
  o.lr = rate;
  o.momentum = momentum;
  o.nesterov = momentum > 0;
  return o;
}

void validate(const Options& o) {
  if (o.kind == Kind::kNone) return;
  at_least_zero(o, "lr", o.lr);
  at_least_zero(o, "weight-decay", o.weight_decay);
  if (o.kind == Kind::kSgd) return validate_sgd(o);

  at_least_zero(o, "eps", o.eps);
  switch (o.kind) {
    case Kind::kNone:
    case Kind::kSgd:
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kSparseAdam:
      from_zero_below_one(o, "beta1", o.beta1);
      from_zero_below_one(o, "beta2", o.beta2);
      break;
    case Kind::kAdagrad:
      at_least_zero(o, "lr-decay", o.lr_decay);
      break;
    case Kind::kRmsProp:
      from_zero_below_one(o, "momentum", o.momentum);
      from_zero_below_one(o, "alpha", o.alpha);
      break;
  }
}

}  // namespace capstan::optimizer
