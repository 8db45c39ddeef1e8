#include "capstan/base/json.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(Json, WritesEveryKindOfValue) {
  EXPECT_EQ(Json().dump(), "null");
  EXPECT_EQ(Json(nullptr).dump(), "null");
  EXPECT_EQ(Json(true).dump(), "true");
  EXPECT_EQ(Json(-3).dump(), "-3");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
  EXPECT_EQ(Json(0.1).dump(), "0.1");
  EXPECT_EQ(Json(2.0).dump(), "2.0");
  EXPECT_EQ(Json("two").dump(), "\"two\"");
  EXPECT_EQ(Json(std::vector<int>{1, 2}).dump(), "[1,2]");
  EXPECT_EQ(Json::array().dump(), "[]");
  EXPECT_EQ(Json::object().dump(), "{}");
}

TEST(Json, NanAndInfinityAreNull) {
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
  EXPECT_EQ(Json(std::numeric_limits<float>::infinity()).dump(), "null");
}

TEST(Json, TextIsEscapedAndInvalidUtf8Replaced) {
  EXPECT_EQ(Json("a\"b\\c\n\x01").dump(), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(Json("\xc3\xa4\xff").dump(), "\"\xc3\xa4\xef\xbf\xbd\"");
  EXPECT_EQ(as_utf8("\"\xc3\xa4\xff"), "\"\xc3\xa4\xef\xbf\xbd");
}

TEST(Json, MembersKeepTheirOrder) {
  Json json{{"z", 1}, {"a", Json{{"nested", false}}}, {"list", {1, "two", nullptr}}};
  json["m"] = 2.5;
  json["z"] = 7;  // in its place
  EXPECT_TRUE(json.contains("a"));
  EXPECT_FALSE(json.contains("nested"));
  EXPECT_EQ(json.dump(), R"({"z":7,"a":{"nested":false},"list":[1,"two",null],"m":2.5})");
  EXPECT_EQ(Json({{"a", {1}}}).dump(2), "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST(Json, ANullBecomesAnObjectOrArray) {
  Json json;
  json["items"].push_back(1);
  json["items"].push_back(Json{{"x", 2}});
  EXPECT_EQ(json.dump(), R"({"items":[1,{"x":2}]})");
}

}  // namespace
}  // namespace capstan
