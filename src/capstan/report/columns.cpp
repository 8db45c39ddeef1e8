#include "capstan/report/columns.h"

#include <algorithm>

#include <fmt/format.h>

namespace capstan::report {

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  std::string out;
  for (const char c : text) {
    if (width(out + c) > columns - 1) break;
    out += c;
  }
  return out + "…";
}

std::string compact(double value) {
  if (value == 0) return "0";
  if (value < 1) return fmt::format("{:.4f}", value);
  if (value < 10) return fmt::format("{:.3f}", value);
  if (value < 100) return fmt::format("{:.2f}", value);
  if (value < 1000) return fmt::format("{:.1f}", value);
  if (value < 99'999.5) return fmt::format("{:.0f}", value);
  for (const char unit : {'k', 'M', 'G', 'T'}) {
    value /= 1000;
    if (value < 999.5) return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, unit);
  }
  return fmt::format("{:.0e}", value * 1e12);
}

}  // namespace capstan::report
