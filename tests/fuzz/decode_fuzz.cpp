// Decodes arbitrary bytes.

#include "fuzz/decode_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  capstan::testing::check_decode({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
