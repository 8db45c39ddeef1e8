#include "capstan/data/csv_number.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace capstan::data {
namespace {

// Whether a decimal number other than 0 is smaller than 1: adds its exponent to that of its first digit.
bool is_below_one(std::string_view number) {
  const auto digits = number.substr(0, number.find_first_of("eE"));
  const auto point = std::min(digits.find('.'), digits.size());
  const auto first = digits.find_first_of("123456789");
  const auto size = static_cast<double>(point) - static_cast<double>(first) - (first < point ? 1 : 0);
  auto rest = number.substr(digits.size());
  rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));
  if (rest.starts_with('+')) rest.remove_prefix(1);
  double exponent = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
  (void)end;
  return error == std::errc::result_out_of_range ? rest.starts_with('-') : size + exponent < 0;
}

template <class T>
std::optional<T> parse(std::string_view cell) {
  if (cell.starts_with('+') && !cell.starts_with("+-")) cell.remove_prefix(1);
  const auto* const end = cell.data() + cell.size();
  T value = 0;
  const auto [at, error] = std::from_chars(cell.data(), end, value);
  if (at != end || error == std::errc::invalid_argument) return {};
  if (error == std::errc{}) return value;
  // std::from_chars does not tell in which direction a number is out of range.
  if (is_below_one(cell)) return T{0};
  constexpr auto kInfinite = std::numeric_limits<T>::infinity();
  return cell.starts_with('-') ? -kInfinite : kInfinite;
}

}  // namespace

std::optional<double> parse_number(std::string_view cell) {
  return parse<double>(cell);
}

std::optional<long double> parse_identifier(std::string_view cell) {
  return parse<long double>(cell);
}

}  // namespace capstan::data
