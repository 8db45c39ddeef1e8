#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// Text for people.
namespace capstan {

// "1 worker", "2 workers".
std::string counted(std::uint64_t number, const std::string& noun);

inline constexpr std::size_t kColumns = 80;  // of a terminal, in which lines for people stay
// The words of a text in lines that end there. `column` is where the first begins, and the others are
// indented.
std::string wrapped(const std::string& text, std::size_t column, std::size_t indent);

// A word as a shell reads it back: in quotes where it needs them.
std::string shell_word(const std::string& word);

// A JSON value as one line of text; bytes that are no UTF-8 (of a file's name, say) are replaced.
template <class Json>
std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace capstan
