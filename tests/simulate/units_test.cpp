#include "capstan/simulate/units.h"

#include <cmath>

#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

TEST(Units, AreParsed) {
  EXPECT_DOUBLE_EQ(parse_rate("--bandwidth", "10Gbps"), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate("--bandwidth", "1.25GB/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(parse_rate("--bandwidth", "100 Mbps"), 12.5e6);
  EXPECT_TRUE(std::isinf(parse_rate("--bandwidth", "inf")));
  EXPECT_DOUBLE_EQ(parse_time("--latency", "50us"), 50e-6);
  EXPECT_DOUBLE_EQ(parse_time("--latency", "1ms"), 1e-3);
  EXPECT_DOUBLE_EQ(parse_time("--latency", "2s"), 2);
  EXPECT_DOUBLE_EQ(parse_time("--latency", "5m"), 300);
  EXPECT_DOUBLE_EQ(parse_time("--latency", "0"), 0);
  EXPECT_DOUBLE_EQ(parse_frequency("--failures", "1/h"), 1.0 / 3600);
  EXPECT_DOUBLE_EQ(parse_frequency("--failures", "3/day"), 3.0 / 86400);
  EXPECT_DOUBLE_EQ(parse_frequency("--failures", "0"), 0);
}

TEST(Units, OfOtherKindsAreErrorsWithTheAllowedForms) {
  for (const char* text : {"", "fast", "10", "0Gbps", "-1Gbps", "10Gb", "nanGbps", "10Gbps!", "Gbps"})
    EXPECT_THROW(parse_rate("--bandwidth", text), UserError) << text;
  for (const char* text : {"", "50", "-1s", "1 hour", "s", "infs"})
    EXPECT_THROW(parse_time("--latency", text), UserError) << text;
  for (const char* text : {"", "1", "1h", "-1/h", "1/", "1/year", "/h"})
    EXPECT_THROW(parse_frequency("--failures", text), UserError) << text;
  try {
    parse_rate("--bandwidth", "10Gb");
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "--bandwidth 10Gb: should be a rate such as 10Gbps (bits), 1.25GB/s (bytes) or inf");
  }
}

TEST(Units, AreFormattedWithThreeDigits) {
  EXPECT_EQ(rate_text(1.25e9), "1.25 GB/s");
  EXPECT_EQ(time_text(50e-6), "50 µs");
  EXPECT_EQ(time_text(0.1234), "123 ms");
  EXPECT_EQ(time_text(12.34), "12.3 s");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(12345e15), "12345 PB");
  EXPECT_EQ(bytes_text(2.5e15), "2.5 PB");
}

}  // namespace
}  // namespace capstan::simulate
