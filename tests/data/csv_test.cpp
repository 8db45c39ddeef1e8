#include "capstan/data/csv.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "data/rendered.h"
#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

using namespace capstan::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Csv : public ::testing::Test {
 protected:
  DatasetOptions options(const std::string& rest) const {
    DatasetOptions o{"csv:t.csv" + rest, folder_.path().string(), 1};
    o.normalize = Normalize::kNone;
    return o;
  }
  void write(const std::string& text, const char* name = "t.csv") const { write_file(folder_ / name, text); }
  Dataset load(const std::string& rest) const { return data::load(options(rest)); }
  void expect_error(const std::string& rest, const std::string& message) const {
    EXPECT_THAT([&] { load(rest); }, ThrowsMessage<UserError>(HasSubstr(message)));
  }

  const TemporaryFolder folder_;
};

TEST_F(Csv, NumbersAreInputsAndTargets) {
  write("a,y,b\n1,10,-1.5\n2,20,1e3\n3,30,+4\n4,40,0.1\n5,50,.5\n6,60,1e-50\n");
  const auto dataset = load(":target=y");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{2}, 0, {1}}));
  EXPECT_EQ(dataset.train->count(), 5u);
  EXPECT_THAT(rendered(*dataset.train, 0), ElementsAre(1, -1.5f));
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(2, 1000));
  EXPECT_THAT(rendered(*dataset.train, 4), ElementsAre(6, 0)) << "the fifth is held out";
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(5, 0.5f));
  EXPECT_THAT(target(*dataset.test, 0), ElementsAre(50));
  const auto two = load(":target=b,y");
  EXPECT_EQ(two.train->shape(), (SampleShape{{1}, 0, {2}}));
  EXPECT_THAT(target(*two.train, 3), ElementsAre(0.1f, 40));
}

TEST_F(Csv, AnErrorHasItsLineWhateverEndsTheLines) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string text = "x,y" + end;
    for (int i = 0; i < 8; ++i) text += "1,2" + end;
    write(text + "1,oops,3" + end);
    expect_error(":target=y", "t.csv: line 10: 3 cells, but the header has 2");
  }
  // Files are read in pieces of 1 MiB: a CR LF is divided.
  std::string text = "x,y\r\n";
  while (text.size() + 20 < (1u << 20)) text += "1,2\r\n";
  text += std::string((1u << 20) - text.size() - 4, '1') + ",22\r";
  ASSERT_EQ(text.size(), 1u << 20);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\r'));
  write(text + "\n1\r\n");
  expect_error(":target=y", "line " + std::to_string(lines + 1) + ": 1 cell, but the header has 2");
}

TEST_F(Csv, AnotherSeparatorIsSuggestedForAHeaderOfOneColumn) {
  write("x;y\n1;2\n");
  expect_error(":target=y", "the columns are x;y; if its cells are separated by ;, give :separator=;");
  write("x\ty\n1\t2\n");
  expect_error(":target=y", "; if its cells are separated by tab, give :separator=tab");
  write("x\n1\n");
  EXPECT_THAT([&] { load(":target=y"); }, ThrowsMessage<UserError>(::testing::EndsWith("the columns are x")));
}

TEST_F(Csv, TextsAreCategoriesInSortedOrderAndNeverNormalised) {
  write("town,n,kind\nKöln,1,b\nAachen,3,a\nKöln,5,c\nBonn,7,b\nBonn,100,a\n");
  auto o = options(":target=kind");
  o.normalize = Normalize::kAuto;
  const auto dataset = data::load(o);
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{4}, 3}));
  const auto n = [](double v) { return static_cast<float>((v - 4) / std::sqrt(5.0)); };
  EXPECT_THAT(rendered(*dataset.train, 0), ElementsAre(0, 0, 1, n(1)));
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(1, 0, 0, n(3)));
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(0, 1, 0, n(100)));
  EXPECT_EQ(dataset.train->label(0), 1);
  EXPECT_EQ(dataset.train->label(2), 2);
  EXPECT_EQ(dataset.test->label(0), 0);
  EXPECT_THAT(dataset.encoding.class_names, ElementsAre("a", "b", "c"));

  o.encoding = Encoding::parse(dataset.encoding.to_json(), "dataset.json");
  o.test_only = true;
  const auto again = data::load(o);
  EXPECT_EQ(rendered(*again.test, 0), rendered(*dataset.test, 0));
  EXPECT_EQ(again.test->label(0), 0);
  EXPECT_EQ(again.test->shape(), dataset.test->shape());
}

TEST_F(Csv, AColumnMayTurnOutToBeText) {
  write("a,b,y\n1,1,0\n2,nan,0\nx,3,0\n1,z,0\n2,1,0\n");
  const auto dataset = load(":target=y");
  EXPECT_THAT(dataset.encoding.columns[0].categories, ElementsAre("1", "2", "x"));
  EXPECT_THAT(dataset.encoding.columns[1].categories, ElementsAre("1", "3", "nan", "z"));
  EXPECT_THAT(rendered(*dataset.train, 2), ElementsAre(0, 0, 1, 0, 1, 0, 0));
}

TEST_F(Csv, LargeWholeNumbersAreDifferentClasses) {
  write(
      "x,y\n0,9007199254740993\n0,9007199254740992\n0,9007199254740993\n0,9007199254740992\n0,"
      "9007199254740993\n");
  const auto dataset = load(":target=y:classes");
  EXPECT_THAT(dataset.encoding.class_names, ElementsAre("9007199254740992", "9007199254740993"));
  EXPECT_EQ(dataset.train->label(0), 1);
  EXPECT_EQ(dataset.train->label(1), 0);
}

TEST_F(Csv, AClassThatIsNotFiniteIsText) {
  write("x,y\n0,10\n0,nan\n0,9\n0,nan\n0,10\n");
  EXPECT_THAT(load(":target=y:classes").encoding.class_names, ElementsAre("10", "9", "nan"));
}

TEST_F(Csv, ANumberThatIsTooLargeIsAnErrorAlsoAsClass) {
  write("x,y\n0,1\n1e400,2\n0,1\n0,2\n0,1\n");
  expect_error(":target=y", "t.csv: line 3: column 'x' is '1e400', not a finite 32-bit float");
  write("x,y\n0,10\n0,9\n0,1e400\n0,9\n0,10\n");
  expect_error(":target=y", "t.csv: line 4: column 'y' is '1e400', not a finite 32-bit float");
  expect_error(":target=y:classes", "t.csv: line 4: column 'y' is '1e400', not a finite 64-bit float");
  write("x,y\n0,c4\n0,9\n0,1e400\n0,9\n0,1e400\n");
  EXPECT_THAT(load(":target=y:classes").encoding.class_names, ElementsAre("1e400", "9", "c4")) << "texts";
}

// Expected floats by NumPy: ((x - x[:4].mean()) / x[:4].std()).astype(float32).
TEST_F(Csv, TimestampsAreNormalisedBeforeTheyAreRounded) {
  write(
      "kind,time,y\na,1700000003.1,1\nb,1700086400.7,1\na,1699990000.2,1\nb,1700000999.9,1\n"
      "a,1700001234.567,1\n");
  auto o = options(":target=y");
  EXPECT_THAT(rendered(*data::load(o).test, 0), ElementsAre(1, 0, 1700001234.567f)) << "only rounded";
  o.normalize = Normalize::kAuto;
  const auto dataset = data::load(o);
  EXPECT_THAT(rendered(*dataset.train, 0), ElementsAre(1, 0, -0.496743321f));
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(0, 1, 1.72145534f));
  EXPECT_THAT(rendered(*dataset.train, 2), ElementsAre(1, 0, -0.753560901f));
  EXPECT_THAT(rendered(*dataset.train, 3), ElementsAre(0, 1, -0.471151173f));
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(1, 0, -0.465126276f));

  // A resumed run and an evaluation have the statistics from a file.
  o.encoding = Encoding::parse(dataset.encoding.to_json(), "dataset.json");
  EXPECT_EQ(*o.encoding, dataset.encoding);
  o.test_only = true;
  EXPECT_THAT(rendered(*data::load(o).test, 0), ElementsAre(1, 0, -0.465126276f));
}

// Channel 0 is 1e9 + 1, 3, 5, 7 (mean 4, variance 5), channel 1 is constant.
TEST_F(Csv, LargeNumbersOfImagesAreNormalisedByChannel) {
  std::string text = "a,b,c,d,y\n";
  for (const int k : {1, 5, 1, 5, 101})
    text += std::to_string(1'000'000'000 + k) + "," + std::to_string(1'000'000'002 + k) + ",0.1,0.1,0\n";
  write(text);
  auto o = options(":target=y:shape=2x1x2");
  o.normalize = Normalize::kAuto;
  const auto n = [](double k) { return static_cast<float>((k - 4) / std::sqrt(5.0)); };
  EXPECT_THAT(rendered(*data::load(o).test, 0), ElementsAre(n(101), 0, n(103), 0));
}

TEST_F(Csv, WholeNumbersAreClassesOnRequestInNumericOrder) {
  write("x,y\n0,10\n0,9\n0,-1\n0,9.0\n0,10\n");
  EXPECT_EQ(load(":target=y").train->shape().classes, 0);
  const auto dataset = load(":target=y:classes");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{1}, 3}));
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < 4; ++i) labels.push_back(dataset.train->label(i));
  EXPECT_THAT(labels, ElementsAre(2, 1, 0, 1)) << "9 and 9.0 are the same class";
  EXPECT_EQ(dataset.test->label(0), 2);
}

TEST_F(Csv, QuotesNewlinesSeparatorsAndByteOrderMarksAreRead) {
  write(
      "\xef\xbb\xbf\"the \"\"x\"\"\",\"multi\nline, name\",y\r\n1,\"a\nb\",2\r\n\r\n 3 "
      ",\"c,d\",4\r\n5,\"c,d\",6\r\n7,\"a\nb\",8\r\n9,\"a\nb\",10");
  const auto dataset = load(":target=y");
  EXPECT_EQ(dataset.encoding.columns[0].name, "the \"x\"");
  EXPECT_EQ(dataset.encoding.columns[1].name, "multi\nline, name");
  EXPECT_THAT(dataset.encoding.columns[1].categories, ElementsAre("a\nb", "c,d"));
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(3, 0, 1));
  EXPECT_EQ(dataset.test->count(), 1u);
  write("a;y\n1;2\n1;2\n1;2\n1;2\n3;4\n");
  EXPECT_THAT(rendered(*load(":target=y:separator=;").test, 0), ElementsAre(3));
  write("a\ty\n1\t2\n1\t2\n1\t2\n1\t2\n3\t4\n");
  EXPECT_THAT(rendered(*load(":target=y:separator=tab").test, 0), ElementsAre(3));
  expect_error(":target=y:separator=ab", "separator=ab: must be one character other than a quote, or tab");
}

TEST_F(Csv, ColumnsBecomeAnImage) {
  write("a,b,c,d,e,f,y\n0,1,2,3,4,5,0\n0,1,2,3,4,5,1\n0,1,2,3,4,5,0\n0,1,2,3,4,5,1\n6,7,8,9,10,11,0\n");
  const auto dataset = load(":target=y:classes:shape=2x1x3");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{2, 1, 3}, 2}));
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(6, 9, 7, 10, 8, 11));
  expect_error(":target=y:shape=1x2x2", "shape=1x2x2 needs 4 columns, and there are 6 besides the target");
  write("a,b,y\nu,0,0\nv,0,0\nu,0,0\nv,0,0\nu,0,0\n");
  expect_error(":target=y:shape=1x1x2", "t.csv: line 2: column 'a' is 'u', not a number as an image needs");
  auto other = options(":target=y:shape=1x1x3");
  other.encoding = load(":target=y").encoding;
  EXPECT_THAT([&] { data::load(other); },
              ThrowsMessage<UserError>(
                  HasSubstr("shape=1x1x3: column 'a' is text, and the columns of an image are numbers")));
}

TEST_F(Csv, ATestFileHasTheColumnsAndCategoriesOfTraining) {
  write("a,town,y\n1,x,no\n2,z,yes\n");
  write("town,y,a\nz,no,7\n", "test.csv");
  const auto dataset = load(":target=y:test=test.csv");
  EXPECT_EQ(dataset.train->count(), 2u);
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(7, 0, 1)) << "in the order of the training file";
  write("town,y,a\nz,no,7\n\"q\",no,8\n", "test.csv");
  expect_error(":target=y:test=test.csv",
               "test.csv: line 3: column 'town' is 'q', which the training part does not have");
  write("town,y,a\nz,maybe,7\n", "test.csv");
  expect_error(":target=y:test=test.csv",
               "line 2: column 'y' is 'maybe', which the training part does not have");
  write("town,y,a\nz,no,many\n", "test.csv");
  expect_error(":target=y:test=test.csv", "line 2: column 'a' is 'many', not a number as in training");
  write("town,y\nz,no\n", "test.csv");
  expect_error(":target=y:test=test.csv", "test.csv: column 'a' of the training part is missing");
  write("town,y,a,b\nz,no,7,8\n", "test.csv");
  expect_error(":target=y:test=test.csv", "test.csv: column 'b' is not one of the training part");
  auto other = options(":target=a:test=test.csv");
  other.encoding = dataset.encoding;
  other.test_only = true;
  EXPECT_THAT([&] { data::load(other); },
              ThrowsMessage<UserError>(HasSubstr("the run was trained with target=y")));
}

TEST_F(Csv, ACategoryOnlyInTheHeldOutPartIsAnError) {
  write("a,y\nu,1\nv,1\nu,1\nv,1\n\"w\",1\n");
  expect_error(":target=y", "t.csv: line 6: column 'a' is 'w', which the training part does not have");
}

// One wrong cell makes a column of numbers a column of texts, most of which are unique.
TEST_F(Csv, AnUnknownCategoryIsReportedWithTheCellThatMadeItsColumnText) {
  const std::string why =
      "which the training part does not have; the column is text because of 'n/a' in line ";
  write("a,y\n1.1,1\n2.2,1\nn/a,1\n3.3,1\n4.4,1\n");
  expect_error(":target=y", "t.csv: line 6: column 'a' is '4.4', " + why + "4 of the training file");
  write("a,y\nn/a,1\nnone,1\n2.2,1\n3.3,1\n4.4,1\n");
  expect_error(":target=y", "t.csv: line 6: column 'a' is '4.4', " + why + "2 of the training file");
  write("y,a\n1,5.5\n", "test.csv");
  expect_error(":target=y:test=test.csv",
               "test.csv: line 2: column 'a' is '5.5', " + why + "2 of the training file");
}

TEST_F(Csv, TooManyCategoriesAreReportedWithTheCellThatMadeThemTexts) {
  const auto numbers = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += std::to_string(i) + ",1\n";
    return out;
  };
  const std::string message =
      "line 4098: column 'id' has more than 4096 different texts; its first cell that is "
      "no number is 'oops' in line ";
  write("id,y\n" + numbers(5000) + "oops,1\n");
  expect_error(":target=y", message + "5002");
  write("id,y\noops,1\n" + numbers(5000));
  expect_error(":target=y", message + "2");
}

TEST_F(Csv, ATargetOfNumbersAndTextsIsClassesOnlyOnRequest) {
  for (const auto* text :
       {"x,y\n0,1.5\n0,2.5\n0,\"n\na\"\n0,2.5\n0,1.5\n", "x,y\n0,1.5\n\n0,2.5\n0,n a\n0,oops\n0,1.5\n"}) {
    write(text);
    expect_error(
        ":target=y",
        "t.csv: line 5: column 'y' is 'n a', and other cells of the target are numbers: correct it, or "
        "give :classes");
  }
  EXPECT_THAT(load(":target=y:classes").encoding.class_names, ElementsAre("1.5", "2.5", "n a", "oops"));
  write("x,y\n0,nan\n0,b\n0,nan\n0,b\n0,nan\n");
  EXPECT_THAT(load(":target=y").encoding.class_names, ElementsAre("b", "nan"));
}

TEST_F(Csv, LongTextsAreShortenedInMessages) {
  std::string text, shown;
  for (int i = 0; i < 100; ++i) text += i == 0 ? "x" : "ä";
  for (int i = 0; i < 30; ++i) shown += i == 0 ? "x" : "ä";  // 59 bytes; another letter would end after 60
  write("a,y\n1,1\n2,1\n3,1\n4,1\n" + text + ",1\n");
  expect_error(":target=a,y", "t.csv: line 6: column 'a' is '" + shown + "…', not a number as");
}

TEST_F(Csv, BadFilesAreErrorsOfOneLine) {
  const auto rows = [](const std::string& last) { return "age,town,y\n1,a,1\n2,b,2\n3,a,3\n" + last; };
  write(rows("4,,5\n"));
  expect_error(":target=y", "t.csv: line 5: column 'town' is empty");
  write(rows("\n\"4\",\"\",5\n"));
  expect_error(":target=y", "t.csv: line 6: column 'town' is empty");
  write(rows("4,\"a\nb\",5\n6,a\n"));
  expect_error(":target=y", "t.csv: line 7: 2 cells, but the header has 3");
  write(rows("4,a,5,6\n"));
  expect_error(":target=y", "t.csv: line 5: 4 cells, but the header has 3");
  for (const auto* bad : {"nan", "inf", "-Infinity", "1e39"}) {
    write(rows(std::string(bad) + ",a,5\n"));
    expect_error(":target=y",
                 std::string("t.csv: line 5: column 'age' is '") + bad + "', not a finite 32-bit float");
  }
  write(rows("4,a \"x\" b,5\n"));
  expect_error(":target=y", "t.csv: line 5: a quote is inside of a cell");
  write(rows("4,\"a,5\n"));
  expect_error(":target=y", "a quoted cell does not end");
  write(rows("4,\xff,5\n"));
  expect_error(":target=y", "line 5: column 'town' is not UTF-8");
  write(rows("4,a,5\n"));
  expect_error(":target=y", "t.csv has 4 samples; every fifth is for testing, so it needs at least 5");
  expect_error(":target=agee", "there is no column 'agee' (did you mean age?); the columns are age, town, y");
  expect_error("", "it needs the target's column; the form is csv:FILE:target=COLUMN");
  expect_error(":target=y,y", "column 'y' is given twice");
  expect_error(":target=y,age:classes", "classes are one column, not several");
  write(rows("4,a,5\n5,a,6\n"));
  expect_error(":target=y,town",
               "t.csv: line 2: column 'town' is 'a', not a number as a target of several columns needs");
  write("1,2\n3,4\n");
  expect_error(":target=y",
               "line 1: the first line has numbers only; it must be a header with the columns' names");
  write(",y\n0,1\n");
  expect_error(":target=y", "line 1: column 1 has no name (pandas writes its index so: use index=False)");
  write("a,a,y\n0,1,2\n");
  expect_error(":target=y", "line 1: two columns are named 'a'");
  write("a,y\n");
  expect_error(":target=y", "t.csv: has a header and no rows");
  write("");
  expect_error(":target=y", "t.csv: is empty; it needs a header line");
  write("y\n1\n2\n3\n4\n5\n");
  expect_error(":target=y", "t.csv: has no column besides the target");
  std::string ids = "id,y\n";
  for (int i = 0; i < 5000; ++i) ids += "n" + std::to_string(i) + ",1\n";
  write(ids);
  expect_error(":target=y", "line 4098: column 'id' has more than 4096 different texts");
}

}  // namespace
}  // namespace capstan::data
