#include "capstan/optimizer/schedule.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

[[noreturn]] void reject(const std::string& text, std::string_view why) {
  throw UserError(fmt::format(
      "learning-rate schedule '{}': {}; use constant, step:EVERY:GAMMA (such as step:1000:0.1) or cosine",
      text, why));
}

// Parses all of `text` as a number.
template <class Number>
bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void parse_step(const std::string& text, std::string_view arguments, Schedule& schedule) {
  const auto colon = arguments.find(':');
  if (colon == std::string_view::npos) reject(text, "GAMMA is missing");
  if (!read(arguments.substr(0, colon), schedule.step_every) || schedule.step_every == 0)
    reject(text, "EVERY must be a number of updates, at least 1");
  const double& gamma = schedule.step_gamma;
  if (!read(arguments.substr(colon + 1), schedule.step_gamma) || !std::isfinite(gamma) || gamma <= 0)
    reject(text, "GAMMA must be a number above 0");
}

}  // namespace

double Schedule::factor(std::uint64_t version) const {
  if (version < warmup) return static_cast<double>(version + 1) / static_cast<double>(warmup);
  const std::uint64_t since = version - warmup;
  switch (kind) {
    case Kind::kConstant:
      return 1;
    case Kind::kStep: {
      const std::uint64_t drops = since / step_every;
      return std::pow(step_gamma, static_cast<double>(drops));
    }
    case Kind::kCosine:
      if (version >= total) return 0;
      return (1 +
              std::cos(std::numbers::pi * static_cast<double>(since) / static_cast<double>(total - warmup))) /
             2;
  }
  return 1;
}

Schedule Schedule::parse(const std::string& text, std::uint64_t warmup, std::uint64_t total) {
  Schedule schedule{.warmup = warmup, .total = total};
  constexpr std::string_view kStepPrefix = "step:";
  if (text == "constant") {
    schedule.kind = Kind::kConstant;
  } else if (text == "cosine") {
    schedule.kind = Kind::kCosine;
    if (total <= warmup)
      throw UserError(
          fmt::format("learning-rate schedule 'cosine': the run has {} updates, of which {} are "
                      "warm-up; use a longer run or a shorter warm-up",
                      total, warmup));
  } else if (text.starts_with(kStepPrefix)) {
    schedule.kind = Kind::kStep;
    parse_step(text, std::string_view(text).substr(kStepPrefix.size()), schedule);
  } else {
    reject(text, "unknown");
  }
  return schedule;
}

std::string Schedule::text() const {
  switch (kind) {
    case Kind::kConstant:
      return "constant";
    case Kind::kStep:
      return fmt::format("step:{}:{}", step_every, step_gamma);
    case Kind::kCosine:
      return "cosine";
  }
  return "constant";
}

}  // namespace capstan::optimizer
