#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The columns of tables in a terminal.
namespace capstan::report {

// The number of characters, not bytes.
std::size_t width(std::string_view text);
// The text, shortened to this many columns with "…".
std::string cut(const std::string& text, std::size_t columns);
// A number of at least 0 in at most six columns, with up to four digits: "0.0123", "12.35", "12.3M".
std::string compact(double value);

}  // namespace capstan::report
