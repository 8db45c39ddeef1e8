#include "capstan/lab/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/configuration_file.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class Action>
void expect_error(Action action, const std::string& what) {
  EXPECT_THAT(action, ThrowsMessage<UserError>(HasSubstr(what)));
}

Configuration sample() {
  return {"file.json: Entry",
          {{"count", std::int64_t{7}}, {"rate", 0.5}, {"sparse", true}, {"name", std::string("gloo")}}};
}

TEST(Configuration, ReturnsEveryKindOfValue) {
  const auto values = sample();
  EXPECT_EQ(values.integer("count"), 7);
  EXPECT_EQ(values.number("rate"), 0.5);
  EXPECT_EQ(values.number("count"), 7);
  EXPECT_TRUE(values.boolean("sparse"));
  EXPECT_EQ(values.text("name"), "gloo");
  EXPECT_NO_THROW(values.check_all_read());
}

TEST(Configuration, ErrorsNameTheFileTheEntryAndTheKey) {
  const auto values = sample();
  expect_error([&] { (void)values.integer("rows"); }, "file.json: Entry: rows is missing");
  expect_error([&] { (void)values.integer("rate"); }, "rate must be a whole number, not a number");
  expect_error([&] { (void)values.boolean("count"); }, "count must be true or false, not a whole number");
  expect_error([&] { (void)values.text("sparse"); }, "sparse must be a text, not true or false");
  expect_error([&] { (void)values.integer("count", 8); }, "count is 7; it must be at least 8");
  expect_error([&] { (void)values.integer("count", 0, 5); }, "count is 7; it must be from 0 to 5");
}

TEST(Configuration, AKeyThatIsNotReadIsAnError) {
  Configuration values("file.json: Entry", {{"count", std::int64_t{1}}, {"cuont", std::int64_t{2}}});
  (void)values.integer("count");
  expect_error([&] { values.check_all_read(); }, "file.json: Entry: cuont is unknown; did you mean count?");
}

TEST(Configuration, OldNamesAreAccepted) {
  Configuration values("f", {{"input_dim", std::int64_t{3}}});
  values.accept_old_name("input_dim", "sample_length");
  EXPECT_EQ(values.integer("sample_length"), 3);
  EXPECT_NO_THROW(values.check_all_read());
  Configuration both("f", {{"input_dim", std::int64_t{3}}, {"sample_length", std::int64_t{3}}});
  expect_error([&] { both.accept_old_name("input_dim", "sample_length"); },
               "input_dim is the old name of sample_length");
}

class File : public ::testing::Test {
 protected:
  ConfigurationFile read(const std::string& text, Kind kind = Kind::kData) {
    write_file(folder_ / "c.json", text);
    return {folder_ / "c.json", kind};
  }
  void expect_bad(const std::string& text, const std::string& what, Kind kind = Kind::kData) {
    EXPECT_THAT([&] { read(text, kind); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("c.json"), HasSubstr(what))));
  }
  TemporaryFolder folder_;
};

using ConfigurationFiles = File;

TEST_F(ConfigurationFiles, HaveEntriesWithAClassAndValues) {
  const auto file =
      read(R"({"Small": {"data_class": "DummyData", "configurations": {"max_val": 3, "share": 0.25}},
               "Other": {"data_class": "Mine"}})");
  EXPECT_THAT(file.names(), ElementsAre("Other", "Small"));
  EXPECT_EQ(file.entry("Small").class_name, "DummyData");
  EXPECT_EQ(file.entry("Small").values.integer("max_val"), 3);
  EXPECT_EQ(file.entry("Small").values.number("share"), 0.25);
  EXPECT_EQ(file.entry("Other").class_name, "Mine");
  expect_error([&] { file.entry("Smal"); }, "has no entry Smal; did you mean Small?");
}

TEST_F(ConfigurationFiles, OfServersAndTrainersMayBeTheValuesAlone) {
  const auto file = read(R"({"AverageParameterServer": {"lock_count": 1}})", Kind::kServer);
  EXPECT_EQ(file.entry("AverageParameterServer").class_name, "AverageParameterServer");
  EXPECT_EQ(file.entry("AverageParameterServer").values.integer("lock_count"), 1);
}

TEST_F(ConfigurationFiles, OlderNamesOfTheClassAreAccepted) {
  const auto file =
      read(R"({"1": {"ps_class": "AverageParameterServer", "configurations": {}}})", Kind::kServer);
  EXPECT_EQ(file.entry("1").class_name, "AverageParameterServer");
}

TEST_F(ConfigurationFiles, MistakesNameTheFileAndThePlace) {
  expect_bad(R"({"A": {"data_class": "B", "configurations": {"x": 1,}}})", "line 1, column 53");
  expect_bad("{\"A\": 1, \n }", "; a comma before } is not valid");
  expect_bad("[1, ]", "; a comma before ] is not valid");
  expect_bad("{\"A\" }", "expected ':'");
  expect_bad("", "is not valid JSON");
  expect_bad("[1, 2]", "must be an object of entries");
  expect_bad(R"({"A": {"data_class": "B"}, "A": {"data_class": "C"}})", "the name A appears twice");
  expect_bad(R"({"A": {"data_class": "B", "configurations": {"x": 1, "x": 2}}})", "the name x appears twice");
  expect_bad(R"({"A": {"model_class": "B", "configurations": {}}})", "A: data_class is missing");
  expect_bad(R"({"A": {"data_class": "B", "configuration": {}}})", "A: configuration is unknown");
  expect_bad(R"({"A": {"data_class": 3}})", "A: data_class must be the name of a class");
  expect_bad(R"({"A": 3})", "A: must be an object");
  expect_bad(R"({"A": {"data_class": "B", "configurations": {"x": [1]}}})",
             "A: x must be a number, a text, true or false, not array");
  expect_bad(R"({"A": {"data_class": "B", "configurations": {"x": 18446744073709551615}}})",
             "A: x is too large");
  expect_bad(R"({"A": {"server_class": "B", "ps_class": "C"}})", "server_class and ps_class name the class",
             Kind::kServer);
  expect_error([&] { ConfigurationFile(folder_ / "none.json", Kind::kData); }, "none.json: no such file");
  expect_error([&] { ConfigurationFile(folder_.path(), Kind::kData); }, ": is not a regular file");
  expect_error([&] { ConfigurationFile("/dev/zero", Kind::kData); }, "/dev/zero: is not a regular file");
}

}  // namespace
}  // namespace capstan::lab
