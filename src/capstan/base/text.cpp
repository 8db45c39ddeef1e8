#include "capstan/base/text.h"

#include <algorithm>
#include <sstream>
#include <string_view>

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

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_utf8(std::string_view text) {
  // The first byte says how many follow; the least number of that length excludes longer spellings.
  constexpr struct {
    unsigned char mask, lead;
    int more;
    std::uint32_t least;
  } kKinds[] = {{0x80, 0x00, 0, 0}, {0xe0, 0xc0, 1, 0x80}, {0xf0, 0xe0, 2, 0x800}, {0xf8, 0xf0, 3, 0x10000}};
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    const auto* kind =
        std::ranges::find_if(kKinds, [&](const auto& k) { return (first & k.mask) == k.lead; });
    if (kind == std::end(kKinds)) return false;
    std::uint32_t point = first & static_cast<unsigned char>(~kind->mask);
    for (int n = 0; n < kind->more; ++n) {
      if (i == text.size() || (text[i] & 0xc0) != 0x80) return false;
      point = point << 6 | (text[i++] & 0x3f);
    }
    if (point < kind->least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
  }
  return true;
}

bool is_one_line(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return is_utf8(text) && std::ranges::none_of(text, is_control);
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (text[bytes] & 0xc0) == 0x80) --bytes;  // in the middle of a character
  return std::string(text.substr(0, bytes)) + "...";
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
