#include "capstan/simulate/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

// Sums of more samples than this use the normal approximation.
constexpr std::uint64_t kFew = 16;

double positive_uniform(Random& random) {
  return 1 - random.uniform();  // in (0, 1], where the logarithm is finite
}

double standard_normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(positive_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

double density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}

// φ(α) / (1 - Φ(α)), which gives the moments of a normal distribution truncated below α.
double hazard(double alpha) {
  return density(alpha) / (std::erfc(alpha / std::numbers::sqrt2) / 2);
}

}  // namespace

struct Distribution::Form {
  std::string_view name;
  Kind kind;
  std::size_t numbers;
  const char* spelling;
};

constexpr Distribution::Form Distribution::kForms[] = {
    {"constant", Kind::kConstant, 1, "constant(seconds)"},
    {"lognormal", Kind::kLognormal, 2, "lognormal(median,sigma)"},
    {"uniform", Kind::kUniform, 2, "uniform(least,most)"},
    {"exponential", Kind::kExponential, 1, "exponential(mean)"},
    {"normal", Kind::kNormal, 2, "normal(mean,sd)"},
};

Distribution Distribution::parse(const std::string& what, const std::string& text) {
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) { return c != ' '; });
  const auto fail = [&](const std::string& reason) -> UserError {
    return UserError(fmt::format("{} {}: {}", what, text, reason));
  };
  const auto open = plain.find('(');
  const bool bare = open == std::string::npos;
  const auto name = bare ? std::string("constant") : plain.substr(0, open);
  if (!bare && !plain.ends_with(')')) throw fail("a closing parenthesis is missing");

  std::vector<std::string_view> names;
  for (const auto& form : kForms) names.push_back(form.name);
  const auto form = std::ranges::find(kForms, name, &Form::name);
  if (form == std::end(kForms)) {
    const auto near = nearest(name, names);
    throw fail(fmt::format("unknown distribution{}; known: {}",
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                           fmt::join(names, ", ")));
  }
  std::string_view rest = plain;
  if (!bare) rest = rest.substr(open + 1, rest.size() - open - 2);
  std::vector<double> numbers;
  for (std::size_t begin = 0; begin <= rest.size();) {
    const auto end = std::min(rest.find(',', begin), rest.size());
    const auto field = rest.substr(begin, end - begin);
    double value = 0;
    const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || stop != field.data() + field.size() || !(value >= 0 && value <= 1e9))
      throw fail(fmt::format("should be {}, in seconds, such as lognormal(0.2,0.5)",
                             bare ? "a number or a distribution" : form->spelling));
    numbers.push_back(value);
    begin = end + 1;
  }
  if (numbers.size() != form->numbers) throw fail(fmt::format("should be {}", form->spelling));
  numbers.resize(2);
  if (form->kind == Kind::kUniform && numbers[0] > numbers[1])
    throw fail("should be uniform(least,most) with the smaller one first");
  if (form->kind == Kind::kLognormal && numbers[1] > 5)
    throw fail("sigma should be at most 5: it is the deviation of the logarithm");
  return {form->kind, numbers[0], numbers[1]};
}

Distribution Distribution::around(double mean, double sigma) {
  if (sigma == 0) return constant(mean);
  return {Kind::kLognormal, mean / std::exp(sigma * sigma / 2), sigma};
}

double Distribution::sample(Random& random) const {
  switch (kind_) {
    case Kind::kConstant:
      return a_;
    case Kind::kLognormal:
      return a_ * std::exp(b_ * standard_normal(random));
    case Kind::kUniform:
      return a_ + (b_ - a_) * random.uniform();
    case Kind::kExponential:
      return -a_ * std::log(positive_uniform(random));
    case Kind::kNormal:
      break;
  }
  // The mean is not negative, so at least half of the draws are accepted.
  double value = a_ + b_ * standard_normal(random);
  while (value < 0) value = a_ + b_ * standard_normal(random);
  return value;
}

double Distribution::sample_sum(Random& random, std::uint64_t count) const {
  if (count > kFew) {
    const auto n = static_cast<double>(count);
    return std::max(0.0, n * mean() + std::sqrt(n) * deviation() * standard_normal(random));
  }
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += sample(random);
  return sum;
}

double Distribution::mean() const {
  switch (kind_) {
    case Kind::kLognormal:
      return a_ * std::exp(b_ * b_ / 2);
    case Kind::kUniform:
      return (a_ + b_) / 2;
    case Kind::kNormal:
      return b_ > 0 ? a_ + b_ * hazard(-a_ / b_) : a_;
    default:
      return a_;
  }
}

double Distribution::deviation() const {
  switch (kind_) {
    case Kind::kConstant:
      return 0;
    case Kind::kLognormal:
      return mean() * std::sqrt(std::expm1(b_ * b_));
    case Kind::kUniform:
      return (b_ - a_) / std::sqrt(12);
    case Kind::kExponential:
      return a_;
    case Kind::kNormal:
      break;
  }
  if (b_ == 0) return 0;
  const double alpha = -a_ / b_, h = hazard(alpha);
  return b_ * std::sqrt(1 + alpha * h - h * h);
}

std::string Distribution::text() const {
  const auto form = std::ranges::find(kForms, kind_, &Form::kind);
  return form->numbers == 1 ? fmt::format("{}({:.4g})", form->name, a_)
                            : fmt::format("{}({:.4g},{:.4g})", form->name, a_, b_);
}

}  // namespace capstan::simulate
