#include "capstan/base/text.h"

#include <string_view>

#include <algorithm>
#include <sstream>

namespace capstan {

std::string counted(std::uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string wrapped(const std::string& text, std::size_t column, std::size_t indent) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) {
    // Continuation bytes of UTF-8 take no column.
    const auto width = static_cast<std::size_t>(
        std::ranges::count_if(word, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
    if (!out.empty() && column + 1 + width > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
  }
  return out;
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+,-@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace capstan
