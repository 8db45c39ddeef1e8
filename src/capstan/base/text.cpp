#include "capstan/base/text.h"

#include <algorithm>
#include <optional>
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

namespace {

// The code point of the next character, which is removed from `text`; none if its bytes are not UTF-8: then
// the first of them is removed.
std::optional<std::uint32_t> take_character(std::string_view& text) {
  // The first byte says how many follow; the least number of that length excludes longer spellings.
  constexpr struct {
    unsigned char mask, lead;
    std::size_t bytes;
    std::uint32_t least;
  } kKinds[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
  const auto rest = text;
  text.remove_prefix(1);
  const auto first = static_cast<unsigned char>(rest[0]);
  const auto* kind = std::ranges::find_if(kKinds, [&](const auto& k) { return (first & k.mask) == k.lead; });
  if (kind == std::end(kKinds) || rest.size() < kind->bytes) return {};
  std::uint32_t point = first & static_cast<unsigned char>(~kind->mask);
  for (const char c : rest.substr(1, kind->bytes - 1)) {
    if ((c & 0xc0) != 0x80) return {};
    point = point << 6 | (c & 0x3f);
  }
  if (point < kind->least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return {};
  text.remove_prefix(kind->bytes - 1);
  return point;
}

// Characters that a terminal obeys instead of showing them: control characters (C0, DEL, C1), line and
// paragraph separators, and those that change the direction of text.
bool is_control(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_character(text)) return false;
  }
  return true;
}

bool is_one_line(std::string_view text) {
  while (!text.empty()) {
    const auto point = take_character(text);
    if (!point || is_control(*point)) return false;
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto before = text;
    const auto point = take_character(text);
    if (point == '\n' || point == '\t' || point == '\r')
      out += ' ';
    else if (!point || is_control(*point))
      out += '?';
    else
      out += before.substr(0, before.size() - text.size());
  }
  return out;
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
