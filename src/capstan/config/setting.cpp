#include "capstan/config/setting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace capstan::config {
namespace {

template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

// Decimal, or hexadecimal after 0x; leading zeros do not make it octal.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

std::optional<double> finite_number(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front()))) return std::nullopt;
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  return rest == text.c_str() + text.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<bool> parse_bool(std::string_view text) {
  constexpr std::string_view kTrue[] = {"true", "yes", "on", "1"}, kFalse[] = {"false", "no", "off", "0"};
  if (std::ranges::find(kTrue, text) != std::end(kTrue)) return true;
  if (std::ranges::find(kFalse, text) != std::end(kFalse)) return false;
  return std::nullopt;
}

// Each overload reads one type; it returns "" or a description of valid values.
std::string read(bool& out, const std::string& text, const Limits&) {
  const auto value = parse_bool(text);
  if (!value) return "should be true or false";
  out = *value;
  return "";
}

std::string read(double& out, const std::string& text, const Limits& limits) {
  const auto value = finite_number(text);
  const auto* range = std::get_if<NumberRange>(&limits);
  if (range && (!value || *value < range->low || *value > range->high))
    return fmt::format("should be a number from {} to {}", range->low, range->high);
  if (!value) return "should be a number";
  out = *value;
  return "";
}

template <std::unsigned_integral T>
std::string read(T& out, const std::string& text, const Limits& limits) {
  const auto* given = std::get_if<WholeRange>(&limits);
  auto range = given ? *given : WholeRange{};
  range.high = std::min<std::uint64_t>(range.high, std::numeric_limits<T>::max());
  const auto value = whole_number(text);
  if (!value || *value < range.low || *value > range.high)
    return fmt::format("should be a whole number from {} to {}", range.low, range.high);
  out = static_cast<T>(*value);
  return "";
}

std::string read(std::string& out, const std::string& text, const Limits& limits) {
  const auto* words = std::get_if<Words>(&limits);
  if (words && words->size() == 1 && text != words->front())
    return fmt::format("should be {}", words->front());
  if (words && std::ranges::find(*words, text) == words->end())
    return fmt::format("should be {} or {}", fmt::join(words->begin(), words->end() - 1, ", "),
                       words->back());
  out = text;
  return "";
}

std::string read(std::filesystem::path& out, const std::string& text, const Limits&) {
  out = text;
  return "";
}

std::string run(const Action& action, const std::string& text, const Limits& limits) {
  if (action.is_switch) {
    bool on = false;
    auto wrong = read(on, text, limits);
    if (wrong.empty() && on) action.run(text);
    return wrong;
  }
  std::uint64_t number = 0;
  if (!std::holds_alternative<WholeRange>(limits)) {
    action.run(text);
    return "";
  }
  auto wrong = read(number, text, limits);
  if (wrong.empty()) action.run(fmt::format("{}", number));
  return wrong;
}

std::string text(const std::string& value) {
  return value;
}
std::string text(const std::filesystem::path& value) {
  return value.string();
}
template <class T>
requires std::is_arithmetic_v<T> std::string text(const T& value) {
  return fmt::format("{}", value);
}
template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "";
}

}  // namespace

bool is_switch(const Setting& setting) {
  if (const auto* action = std::get_if<Action>(&setting.value)) return action->is_switch;
  return std::holds_alternative<bool*>(setting.value) ||
         std::holds_alternative<std::optional<bool>*>(setting.value);
}

std::string assign(const Setting& setting, const std::string& given) {
  return std::visit(
      [&]<class P>(const P& place) -> std::string {
        if constexpr (std::is_same_v<P, Action>) {
          return run(place, given, setting.limits);
        } else {
          typename Unwrapped<std::remove_pointer_t<P>>::Type value{};
          auto wrong = read(value, given, setting.limits);
          if (wrong.empty()) *place = std::move(value);
          return wrong;
        }
      },
      setting.value);
}

std::string text_of(const Value& value) {
  return std::visit(
      []<class P>(const P& place) -> std::string {
        if constexpr (std::is_same_v<P, Action>)
          return "";
        else
          return text(*place);
      },
      value);
}

}  // namespace capstan::config
