#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan::workloads {

// A text as numbers, one for each of its bytes. The last tenth is for testing.
struct Text {
  std::vector<std::uint8_t> train, test;  // indices into `characters`
  std::vector<std::uint8_t> characters;   // the distinct bytes of the whole text, sorted
};

// "text" is built in, "text:FILE" a file. Throws UserError for another name, and for a file that cannot be
// read or has fewer than `least` bytes in one of its parts.
Text load_text(const std::string& dataset, std::size_t least);

}  // namespace capstan::workloads
