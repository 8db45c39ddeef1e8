#include "capstan/data/csv_number.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace capstan::data {
namespace {

const std::string kZeros(400, '0'), kNines(400, '9');

// As Python's float() reads them.
TEST(CsvNumber, IsThatOfPython) {
  const std::pair<std::string, double> numbers[] = {
      {"0.1", 0.1},       {"+.5", 0.5},           {"1.", 1},
      {"-2.5E3", -2500},  {"16777217", 16777217}, {"1e-310", 1e-310},
      {"3e-324", 5e-324}, {"0e999", 0},           {"0.000e-999", 0},
      {kZeros + "1", 1},  {kNines + "e-400", 1},  {"0." + kZeros + "1e401", 1},
  };
  for (const auto& [text, number] : numbers) EXPECT_EQ(parse_number(text), number) << text;
}

TEST(CsvNumber, TooSmallIsZero) {
  for (const auto& text : {std::string("2e-324"), std::string("1e-400"), std::string("-1E-400"),
                           "0." + kZeros + "1", "." + kZeros + "1", kNines + "e-800", "0." + kZeros + "1e+10",
                           std::string("1e-99999999999999999999"), "1e-" + kNines})
    EXPECT_EQ(parse_number(text), 0) << text;
  EXPECT_EQ(parse_identifier("1e-5000"), 0);
}

TEST(CsvNumber, TooLargeIsInfinite) {
  for (const auto& text : {std::string("1e400"), std::string("+1e+400"), kNines, "1" + kZeros + ".5",
                           "0." + kZeros + "1e800", std::string("1e99999999999999999999"), "1e" + kNines}) {
    EXPECT_EQ(parse_number(text), INFINITY) << text;
    EXPECT_EQ(parse_number("-" + text.substr(text.starts_with('+'))), -INFINITY) << text;
  }
  EXPECT_EQ(parse_identifier("1e5000"), INFINITY);
}

TEST(CsvNumber, OtherTextsAreNone) {
  for (const auto* text : {"", "+", "-", ".", "e5", "+-1", "++1", "1e", "1 2", "0x10", "1,5", "n/a"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(CsvNumber, IdentifiersHave64Bits) {
  EXPECT_NE(parse_identifier("9007199254740993"), parse_identifier("9007199254740992"));
  EXPECT_EQ(parse_identifier("18446744073709551615"), 18446744073709551615.0L);
}

}  // namespace
}  // namespace capstan::data
