#include "capstan/base/dtype.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace capstan {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<float> floats(DType type, const std::string& text) {
  std::vector<float> out(text.size() / bytes_of(type));
  to_floats(type, bytes(text), out);
  return out;
}

std::vector<std::int64_t> integers(DType type, const std::string& text) {
  std::vector<std::int64_t> out(text.size() / bytes_of(type));
  to_integers(type, bytes(text), out);
  return out;
}

// The bytes are those of NumPy's tobytes().
TEST(DType, IntegersAreReadWithTheirSign) {
  EXPECT_EQ(integers(DType::kI8, "\x80\xff\x7f"s), (std::vector<std::int64_t>{-128, -1, 127}));
  EXPECT_EQ(integers(DType::kU8, "\x80\xff\x00"s), (std::vector<std::int64_t>{128, 255, 0}));
  EXPECT_EQ(integers(DType::kI16, "\xfe\xff\x00\x01"s), (std::vector<std::int64_t>{-2, 256}));
  EXPECT_EQ(integers(DType::kU16, "\xfe\xff"s), (std::vector<std::int64_t>{65534}));
  EXPECT_EQ(integers(DType::kI32, "\x00\x00\x00\x80"s), (std::vector<std::int64_t>{-2147483648}));
  EXPECT_EQ(integers(DType::kU32, "\x00\x00\x00\x80"s), (std::vector<std::int64_t>{2147483648}));
  EXPECT_EQ(integers(DType::kI64, "\x03\x00\x00\x00\x00\x00\x00\x80"s),
            (std::vector<std::int64_t>{INT64_MIN + 3}));
  EXPECT_EQ(integers(DType::kU64, "\x03\x00\x00\x00\x00\x00\x00\x80"s),
            (std::vector<std::int64_t>{INT64_MAX}));
  EXPECT_EQ(integers(DType::kBool, "\x00\x01\x02"s), (std::vector<std::int64_t>{0, 1, 1}));
}

TEST(DType, NumbersBecomeFloats) {
  EXPECT_EQ(floats(DType::kI16, "\xfe\xff"s), (std::vector<float>{-2}));
  EXPECT_EQ(floats(DType::kU64, "\x00\x00\x00\x00\x00\x00\x00\x80"s), (std::vector<float>{0x1p63f}));
  EXPECT_EQ(floats(DType::kF32, "\x00\x00\xc0\x3f"s), (std::vector<float>{1.5f}));
  EXPECT_EQ(floats(DType::kF64, "\x9a\x99\x99\x99\x99\x99\xb9\x3f"s), (std::vector<float>{0.1f}));
  EXPECT_EQ(floats(DType::kF16, "\x00\xc1\x01\x00"s), (std::vector<float>{-2.5f, 0x1p-24f}));
  EXPECT_TRUE(std::isnan(floats(DType::kF16, "\x01\x7e"s)[0]));
  EXPECT_EQ(floats(DType::kBF16, "\x20\xc0"s), (std::vector<float>{-2.5f}));
  EXPECT_EQ(floats(DType::kBool, "\x01\x00"s), (std::vector<float>{1, 0}));
}

TEST(DType, BoolCountsAsAnInteger) {
  EXPECT_TRUE(is_integer(DType::kBool));
  EXPECT_TRUE(is_integer(DType::kU8));
  EXPECT_FALSE(is_integer(DType::kBF16));
}

}  // namespace
}  // namespace capstan
