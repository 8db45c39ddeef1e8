#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>

namespace capstan::cluster {

// The secret of one job: who knows it may take part. 256 bits, written as 64 hexadecimal digits,
// with spaces or without.
struct Token {
  std::array<std::byte, 32> bytes{};

  static Token generate();
  // Throws UserError where the text is not 64 hexadecimal digits; `where` names its source.
  static Token parse(const std::string& text, const std::string& where);
  std::string text() const;
};

// Reads a token file; throws UserError where it is missing, malformed or readable by others.
Token read_token(const std::filesystem::path& file);

// The token of `file` if it is not empty, else of the environment's CAPSTAN_TOKEN. Throws UserError that
// says how to make one where neither is there.
Token find_token(const std::filesystem::path& file);

inline constexpr const char* kTokenVariable = "CAPSTAN_TOKEN";

}  // namespace capstan::cluster
