#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Formatting of text that users read.
namespace capstan {

// "1 worker", "2 workers".
std::string counted(std::uint64_t number, const std::string& noun);

inline constexpr std::size_t kColumns = 80;  // width of a terminal line
// Wraps a text at kColumns. The first line begins at `column`; the others are indented by `indent`.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent);

// The parts between the separators, at least one.
std::vector<std::string> split(const std::string& text, char separator);

bool is_utf8(std::string_view text);
// UTF-8 without control characters: line breaks, terminal escapes (C0, DEL, C1), changes of direction.
bool is_one_line(std::string_view text);
// Any bytes as one such line: a space for a line break or a tab, "?" for other control characters and for
// bytes that are not UTF-8.
std::string printable(std::string_view text);
// The first characters of a UTF-8 text, at most `bytes` of it, with "..." if more follow.
std::string shortened(std::string_view text, std::size_t bytes);

// A word as a shell reads it back: in quotes if it needs them.
std::string shell_word(const std::string& word);

// A JSON value as one line of text; bytes that are not UTF-8 (in a file name, for example) are replaced.
template <class Json>
std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace capstan
