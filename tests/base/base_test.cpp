// Status, spelling, random numbers, descriptors, checks.

#include <array>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "capstan/base/check.h"
#include "capstan/base/ids.h"
#include "capstan/base/random.h"
#include "capstan/base/spelling.h"
#include "capstan/base/text.h"
#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"
#include "capstan/status.h"

namespace capstan {
namespace {

TEST(Status, CarriesItsCause) {
  const auto status = Status::refused("wrong token").within("join 127.0.0.1:70");
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_EQ(status.message(), "join 127.0.0.1:70: wrong token");
  EXPECT_FALSE(status);
}

TEST(Status, SuccessHasNoMessage) {
  EXPECT_TRUE(Status::ok());
  EXPECT_TRUE(Status::ok().within("anything"));
  EXPECT_EQ(Status::ok().within("anything").message(), "");
}

TEST(Status, EveryKindHasItsCode) {
  EXPECT_EQ(Status::closed("").code(), StatusCode::kClosed);
  EXPECT_EQ(Status::timeout("").code(), StatusCode::kTimeout);
  EXPECT_EQ(Status::malformed("").code(), StatusCode::kMalformed);
  EXPECT_EQ(Status::unavailable("").code(), StatusCode::kUnavailable);
}

TEST(Result, HoldsAValueOrTheReason) {
  Result<std::string> good(std::string("here"));
  EXPECT_TRUE(good);
  EXPECT_EQ(good->size(), 4u);
  EXPECT_TRUE(good.status());
  const Result<std::string> bad(Status::timeout("too late"));
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.status().message(), "too late");
}

TEST(ResultDeathTest, ReadingTheValueOfAFailureIsABug) {
  Result<int> bad(Status::timeout("too late"));
  EXPECT_DEATH((void)*bad, "only a successful Result has a value: too late");
  EXPECT_DEATH((void)Result<int>(Status::ok()), "carries a failure");
}

TEST(Spelling, FindsTheNearestWord) {
  const std::array<std::string_view, 4> words = {"sync", "async", "batch", "local-sgd"};
  EXPECT_EQ(nearest("snyc", words), "sync");
  EXPECT_EQ(nearest("batc", words), "batch");
  EXPECT_EQ(nearest("local_sgd", words), "local-sgd");
  EXPECT_EQ(nearest("async", words), "async");
  const std::array<std::string_view, 2> close = {"aaaabbb", "aaaaxx"};
  EXPECT_EQ(nearest("aaaa", close), "aaaaxx");  // two letters more, not three
}

TEST(Spelling, FindsNothingFarAway) {
  const std::array<std::string_view, 2> words = {"sync", "async"};
  EXPECT_EQ(nearest("resnet50", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("sync", {}), "");
}

// Published values of SplitMix64 for the seed 1234567.
TEST(Text, IsUtf8OrNot) {
  for (const auto* good : {"", "plain", "µ ÷ …", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const auto* bad :
       {"\xff", "a\x80", "\xc3", "\xe2\x82", "\xc0\xaf" /* overlong */, "\xe0\x80\xaf",
        "\xed\xa0\x80" /* a surrogate */, "\xf4\x90\x80\x80" /* too large */, "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

TEST(Text, IsOneLineOrNot) {
  for (const auto* good : {"", "a b", "µ ÷ …"}) EXPECT_TRUE(is_one_line(good)) << good;
  for (const auto* bad : {"a\n", "\ta", "\x7f", "\x1b[0m", "\xff", "\u0080", "\u009b2J", "\u2028", "\u202e",
                          "\u2066", "\u2069"})
    EXPECT_FALSE(is_one_line(bad)) << bad;
  for (const auto* good : {"\u00a0", "\u2027", "\u202f", "\u2065", "\u206a"})
    EXPECT_TRUE(is_one_line(good)) << good;
}

TEST(Text, BecomesPrintable) {
  for (const auto* same : {"", "a b", "µ ÷ … \xf0\x9f\x98\x80"}) EXPECT_EQ(printable(same), same);
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07x"), "?[2J?]0;title?x");
  EXPECT_EQ(printable("a\nb\r\tc"), "a b  c");
  EXPECT_EQ(printable("\u009b2J \u202eabc\u2069 \x7f"), "?2J ?abc? ?");
  EXPECT_EQ(printable("\xff\xc3 \xe2\x82z"), "?? ??z") << "each byte that is not UTF-8";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
}

TEST(Text, IsShortenedToWholeCharacters) {
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abcd...");
  EXPECT_EQ(shortened("abcµe", 4), "abc...");
  EXPECT_EQ(shortened("abcµe", 5), "abcµ...");
  EXPECT_EQ(shortened("", 0), "");
}

TEST(Random, MixesAsSplitMix64Does) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  EXPECT_EQ(mix64(1234567), 6457827717110365317ULL);
  EXPECT_EQ(mix64(1234567 + kGolden), 3203168211198807973ULL);
  EXPECT_EQ(mix64(1234567 + 2 * kGolden), 9817491932198370423ULL);
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
}

// The generator gives the sequence of SplitMix64 from its second number on.
TEST(Random, GivesTheSameNumbersOnEveryMachine) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
  EXPECT_EQ(random.next(), 9817491932198370423ULL);
  EXPECT_EQ(random.next(), 4593380528125082431ULL);
  EXPECT_EQ(random.next(), 16408922859458223821ULL);
}

TEST(Random, StaysBelowItsBound) {
  Random random(7);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 500; ++i) {
    const auto x = random.below(10);
    ASSERT_LT(x, 10u);
    seen.insert(x);
    const auto u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(Random(1).below(1), 0u);
}

// mix64(mix64(1) ^ 2), the inner value published as SplitMix64's first for the seed 1.
TEST(Random, SeedsDependOnTheirPartsInOrder) {
  EXPECT_EQ(derive_seed({}), 0u);
  EXPECT_EQ(derive_seed({1}), 0x910a2dec89025cc1ULL);
  EXPECT_EQ(derive_seed({1, 2}), mix64(0x910a2dec89025cc1ULL ^ 2));
  EXPECT_NE(derive_seed({1, 2}), derive_seed({2, 1}));
  EXPECT_NE(derive_seed({1}), derive_seed({1, 0}));
}

TEST(UniqueFd, ClosesOnceAndMoves) {
  UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(a);
  const int fd = a.get();
  UniqueFd b(std::move(a));
  EXPECT_EQ(b.get(), fd);
  EXPECT_EQ(::fcntl(fd, F_GETFD) == -1, false);
  b.reset();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(Time, SecondsAndBack) {
  EXPECT_DOUBLE_EQ(seconds(from_seconds(1.5)), 1.5);
  EXPECT_EQ(from_seconds(0.25), std::chrono::milliseconds(250));
}

TEST(Ids, OrderByValue) {
  EXPECT_LT(WorkerId{1}, WorkerId{2});
  EXPECT_EQ(Version{3}, Version{3});
}

TEST(CheckDeathTest, SaysWhatWasExpected) {
  EXPECT_DEATH(CAPSTAN_CHECK(1 == 2, "arithmetic works"), "base_test.cpp:.*1 == 2: arithmetic works");
}

}  // namespace
}  // namespace capstan
