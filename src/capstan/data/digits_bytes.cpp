#include "capstan/data/digits_bytes.h"

// The assembler includes the file: no generated code, and no file to find at run time.
asm(R"(
  .pushsection .rodata
  .balign 16
capstan_digits_begin:
  .incbin "digits.csv.gz"
capstan_digits_end:
  .popsection
  .global capstan_digits_begin
  .global capstan_digits_end
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::uint8_t capstan_digits_begin[];
[[gnu::visibility("hidden")]] extern const std::uint8_t capstan_digits_end[];
}

namespace capstan::data {

std::span<const std::uint8_t> digits_bytes() {
  return {capstan_digits_begin, capstan_digits_end};
}

}  // namespace capstan::data
