#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>

namespace capstan::cluster {

// The secret of one job: a process that knows it may join. 256 bits, written as 64 hexadecimal digits, with
// or without spaces.
struct Token {
  std::array<std::byte, 32> bytes{};

  static Token generate();
  // Throws UserError if the text is not 64 hexadecimal digits; `where` names its source.
  static Token parse(const std::string& text, const std::string& where);
  std::string text() const;
};

// Reads a token file; throws UserError if it is missing, malformed or readable by others.
Token read_token(const std::filesystem::path& file);

// The token in `file`, or, if `file` is empty, in the environment variable CAPSTAN_TOKEN. Throws UserError
// that explains how to create a token if there is neither.
Token find_token(const std::filesystem::path& file);

inline constexpr const char* kTokenVariable = "CAPSTAN_TOKEN";

}  // namespace capstan::cluster
