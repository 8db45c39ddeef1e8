#pragma once

#include <cstdint>
#include <string>

#include "capstan/base/random.h"

namespace capstan::simulate {

// How long something takes, in seconds, as a random number that is never negative. Immutable.
class Distribution {
 public:
  // "0.2" or "constant(0.2)", "lognormal(m,s)" with median m and deviation s of the logarithm,
  // "uniform(a,b)", "exponential(mean)", "normal(mean,sd)" without what would be negative. Throws UserError.
  static Distribution parse(const std::string& what, const std::string& text);
  static Distribution constant(double seconds) { return {Kind::kConstant, seconds, 0}; }
  // The lognormal one of this mean; constant where sigma is 0.
  static Distribution around(double mean, double sigma);

  double sample(Random& random) const;
  // The sum of so many samples; of many, by the normal distribution that it approaches.
  double sample_sum(Random& random, std::uint64_t count) const;
  double mean() const;
  double deviation() const;
  std::string text() const;  // as parse() takes it, with four digits

 private:
  enum class Kind { kConstant, kLognormal, kUniform, kExponential, kNormal };
  struct Form;
  static const Form kForms[];

  Distribution(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  Kind kind_;
  double a_, b_;
};

}  // namespace capstan::simulate
