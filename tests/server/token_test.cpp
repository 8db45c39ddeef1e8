#include "capstan/cluster/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::cluster {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;

const std::string kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

template <class Action>
std::string error_of(Action action) {
  try {
    (void)action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void write_private(const std::filesystem::path& file, const std::string& text) {
  write_file(file, text);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
}

TEST(Token, IsWrittenAsSixtyFourDigits) {
  const auto token = Token::parse(kDigits, "here");
  for (std::size_t i = 0; i < token.bytes.size(); ++i) EXPECT_EQ(token.bytes[i], static_cast<std::byte>(i));
  EXPECT_EQ(token.text(), kDigits);
}

TEST(Token, CapitalsAndALineEndAreFine) {
  auto upper = kDigits;
  for (auto& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(Token::parse(" " + upper + "\r\n", "here").text(), kDigits);
}

TEST(Token, NoTwoAreTheSame) {
  const auto token = Token::generate();
  EXPECT_NE(token.bytes, Token::generate().bytes);
  EXPECT_EQ(Token::parse(token.text(), "here").bytes, token.bytes);
}

TEST(Token, MalformedTextIsAnErrorThatSaysWhere) {
  for (const auto& text : {std::string(), kDigits.substr(1), kDigits.substr(2), kDigits + "00", kDigits + "0",
                           "x" + kDigits.substr(1), kDigits + " and more", std::string(64, 'g')}) {
    EXPECT_THAT(error_of([&] { return Token::parse(text, "somewhere"); }),
                HasSubstr("somewhere: a job token is 64"))
        << text;
  }
}

// The command that messages and the README name.
TEST(Token, IsWhatOdMakes) {
  const TemporaryFolder folder;
  const auto file = (folder / "job.token").string();
  ASSERT_EQ(std::system(("umask 077; od -An -N32 -tx1 /dev/urandom > " + file).c_str()), 0);
  EXPECT_EQ(read_token(file).text().size(), 64u);
}

TEST(Token, AFileThatOthersCanReadIsRefused) {
  const TemporaryFolder folder;
  write_private(folder / "job.token", kDigits);
  for (const mode_t mode : {0640, 0604, 0660, 0644, 0601}) {
    ASSERT_EQ(::chmod((folder / "job.token").c_str(), mode), 0);
    EXPECT_THAT(error_of([&] { return read_token(folder / "job.token"); }), HasSubstr("chmod 600")) << mode;
  }
  ASSERT_EQ(::chmod((folder / "job.token").c_str(), 0400), 0);
  EXPECT_EQ(read_token(folder / "job.token").text(), kDigits);
}

TEST(Token, FilesThatHoldNoneAreErrors) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { return read_token(folder / "missing"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { return read_token(folder.path()); }), HasSubstr("not a regular file"));
  write_private(folder / "empty", "");
  EXPECT_THAT(error_of([&] { return read_token(folder / "empty"); }), HasSubstr("64 hexadecimal digits"));
  write_private(folder / "long", kDigits + std::string(300, ' ') + "and more");
  EXPECT_THAT(error_of([&] { return read_token(folder / "long"); }), HasSubstr("64 hexadecimal digits"));
}

TEST(Token, TheFileWinsOverTheEnvironment) {
  const TemporaryFolder folder;
  const auto other = Token::generate();
  write_private(folder / "job.token", other.text());
  ::setenv(kTokenVariable, kDigits.c_str(), 1);
  EXPECT_EQ(find_token({}).text(), kDigits);
  EXPECT_EQ(find_token(folder / "job.token").bytes, other.bytes);
  ::setenv(kTokenVariable, "nonsense", 1);
  EXPECT_THAT(error_of([&] { return find_token({}); }), HasSubstr("CAPSTAN_TOKEN"));
  ::unsetenv(kTokenVariable);
  EXPECT_THAT(error_of([&] { return find_token({}); }),
              HasSubstr("od -An -N32 -tx1 /dev/urandom > job.token"));
}

}  // namespace
}  // namespace capstan::cluster
