#pragma once

#include <cstdint>
#include <string>

#include "capstan/base/random.h"

namespace capstan::simulate {

// A non-negative random duration in seconds. Immutable.
class Distribution {
 public:
  // "0.2" or "constant(0.2)", "lognormal(m,s)" with median m and deviation s of the logarithm,
  // "uniform(a,b)", "exponential(mean)", "normal(mean,sd)" truncated at 0. Throws UserError.
  static Distribution parse(const std::string& what, const std::string& text);
  static Distribution constant(double seconds) { return {Kind::kConstant, seconds, 0}; }
  // Lognormal with this mean; constant if sigma is 0.
  static Distribution around(double mean, double sigma);

  double sample(Random& random) const;
  // The sum of `count` samples; for many, drawn from the normal approximation.
  double sample_sum(Random& random, std::uint64_t count) const;
  double mean() const;
  double deviation() const;
  std::string text() const;  // for parse(), with four digits

 private:
  enum class Kind { kConstant, kLognormal, kUniform, kExponential, kNormal };
  struct Form;
  static const Form kForms[];

  Distribution(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  Kind kind_;
  double a_, b_;
};

}  // namespace capstan::simulate
