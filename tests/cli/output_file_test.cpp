#include "capstan/cli/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capstan/base/unique_fd.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Outputs : public ::testing::Test {
 protected:
  template <class Function>
  static void expect_error(Function function, const std::string& what) {
    EXPECT_THAT(function, ThrowsMessage<UserError>(HasSubstr(what)));
  }
  const TemporaryFolder folder_;
};

TEST_F(Outputs, AFileChangesOnlyWhenItIsWritten) {
  write_file(folder_ / "a.csv", "before");
  {
    const OutputFile unused("csv", folder_ / "a.csv");
    EXPECT_TRUE(unused.is_wanted());
  }
  EXPECT_EQ(contents(folder_ / "a.csv"), "before");
  OutputFile("csv", folder_ / "a.csv").write("after");
  EXPECT_EQ(contents(folder_ / "a.csv"), "after");
  EXPECT_FALSE(OutputFile("csv", "").is_wanted());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no temporary file is left";
}

TEST_F(Outputs, ALinkIsFollowed) {
  write_file(folder_ / "target", "before");
  fs::create_symlink(folder_ / "target", folder_ / "link");
  fs::create_symlink(folder_ / "new", folder_ / "dangling");
  OutputFile("csv", folder_ / "link").write("after");
  OutputFile("csv", folder_ / "dangling").write("after");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(contents(folder_ / "target"), "after");
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(contents(folder_ / "new"), "after");
}

TEST_F(Outputs, APipeIsWrittenAndStaysAPipe) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  OutputFile("csv", pipe).write("text");
  char text[8] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Outputs, WhatCannotBeWrittenIsKnownAtOnce) {
  const auto folder = folder_.path().string();
  expect_error([&] { OutputFile("csv", folder_.path()); }, "--csv " + folder + ": is a folder");
  expect_error([&] { OutputFile("html", folder_ / "no/x"); },
               "--html: cannot create " + folder + "/no/x: No such file");
}

TEST_F(Outputs, FilesOfACommandDiffer) {
  const OutputFile csv("csv", folder_ / "x");
  const OutputFile* const others[] = {&csv};
  expect_error([&] { OutputFile("html", folder_ / "./x", others); }, "is also the file of --csv");
  const std::vector<std::string> inputs = {(folder_ / "lab.json").string()};
  write_file(inputs[0], "{}");
  expect_error([&] { OutputFile("html", folder_ / "lab.json", others, inputs); },
               "is read by this command, too");
  EXPECT_NO_THROW(OutputFile("html", folder_ / "y", others, inputs));
}

}  // namespace
}  // namespace capstan::cli
