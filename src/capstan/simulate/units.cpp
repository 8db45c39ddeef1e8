#include "capstan/simulate/units.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit kRates[] = {{"bps", 0.125}, {"kbps", 125}, {"Mbps", 125e3}, {"Gbps", 125e6}, {"Tbps", 125e9},
                           {"B/s", 1},     {"kB/s", 1e3}, {"MB/s", 1e6},   {"GB/s", 1e9},   {"TB/s", 1e12}};
constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3},
                           {"s", 1},     {"m", 60},    {"min", 60},  {"h", 3600}};
constexpr Unit kPeriods[] = {{"s", 1},       {"min", 60},    {"m", 60},    {"h", 3600},
                             {"hour", 3600}, {"day", 86400}, {"d", 86400}, {"week", 604800}};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A non-negative number and its unit.
struct Quantity {
  double number;
  std::string_view unit;
};
std::optional<Quantity> divide(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return Quantity{number, text};
}

std::optional<double> size_of(std::span<const Unit> units, std::string_view name) {
  for (const auto& unit : units)
    if (unit.name == name) return unit.size;
  return {};
}

[[noreturn]] void fail(const std::string& what, const std::string& text, const char* right) {
  throw UserError(fmt::format("{} {}: should be {}", what, text, right));
}

// Three digits, in the largest unit that gives at least 1.
std::string scaled(double value, std::span<const Unit> units) {
  if (std::isinf(value)) return "unlimited";
  const auto* unit = &units.front();
  for (const auto& u : units)
    if (value >= u.size) unit = &u;
  const double number = value / unit->size;
  return number >= 999.5 ? fmt::format("{:.0f} {}", number, unit->name)
                         : fmt::format("{:.3g} {}", number, unit->name);
}

}  // namespace

double parse_rate(const std::string& what, const std::string& text) {
  if (text == "inf") return kInfinity;
  const auto q = divide(text);
  const auto size = q ? size_of(kRates, q->unit) : std::nullopt;
  if (!size || q->number == 0) fail(what, text, "a rate such as 10Gbps (bits), 1.25GB/s (bytes) or inf");
  return q->number * *size;
}

double parse_time(const std::string& what, const std::string& text) {
  const auto q = divide(text);
  auto size = q ? size_of(kTimes, q->unit) : std::nullopt;
  if (q && q->number == 0 && q->unit.empty()) size = 1;
  if (!size) fail(what, text, "a time such as 50us, 1ms or 2s");
  return q->number * *size;
}

double parse_frequency(const std::string& what, const std::string& text) {
  const auto q = divide(text);
  if (q && q->number == 0 && q->unit.empty()) return 0;
  const auto size = q && q->unit.starts_with('/') ? size_of(kPeriods, q->unit.substr(1)) : std::nullopt;
  if (!size) fail(what, text, "a frequency such as 1/h, 3/day or 0");
  return q->number / *size;
}

std::string rate_text(double bytes_per_second) {
  constexpr Unit kUnits[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
  return scaled(bytes_per_second, kUnits);
}

std::string time_text(double seconds) {
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  return seconds == 0 ? "0 s" : scaled(seconds, kUnits);
}

std::string bytes_text(double bytes) {
  constexpr Unit kUnits[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}};
  return scaled(bytes, kUnits);
}

}  // namespace capstan::simulate
