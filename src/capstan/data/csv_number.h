#pragma once

#include <optional>
#include <string_view>

namespace capstan::data {

// The number of a cell as Python's float() reads it, or no value for a text. A number that is too large for
// the type is infinite, one that is too small is 0.
std::optional<double> parse_number(std::string_view cell);
// With 64 bits of precision, so that whole numbers such as identifiers stay different.
std::optional<long double> parse_identifier(std::string_view cell);

}  // namespace capstan::data
