// find_package(Capstan): what a project that uses the package gets, and what it does not.

#include <gmock/gmock.h>

#include "capstan/version.h"

#include "library/installation.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// CMake wraps its messages.
std::string unwrapped(const std::string& text) {
  std::istringstream in(text);
  std::string words;
  for (std::string word; in >> word;) words += word + " ";
  return words;
}

// The output of a project without a compiler that has these lines.
ShellResult configured(const Installation& installed, const std::string& lines) {
  const auto source = installed.project("finder", "project(finder LANGUAGES NONE)\n" + lines);
  auto result = installed.configure(source);
  result.output = unwrapped(result.output);
  fs::remove_all(source);
  return result;
}

// Each line of this file is a warning that Capstan's own code must not have.
constexpr const char* kWarns = R"(#include <capstan/capstan.h>
struct Base { virtual void f() {} };
int main(int count, char**) {
  int unused;
  if (unsigned size = 3; count < size) { int count = 2; }
  return capstan::protocol_version() > 0 ? 0 : 1;
}
)";

TEST(Package, GivesAProjectNoFlags) {
  const Installation installed;
  const auto source = installed.project("warns",
                                        "project(warns LANGUAGES CXX)\n"
                                        "set(CMAKE_CXX_STANDARD 17)\n"  // the package asks for more
                                        "find_package(Capstan REQUIRED COMPONENTS client)\n"
                                        "add_executable(warns main.cpp)\n"
                                        "target_link_libraries(warns PRIVATE capstan::client)\n",
                                        kWarns);
  const auto configured = installed.configure(source);
  ASSERT_EQ(configured.code, 0) << configured.output;
  const auto built = shell({"cmake", "--build", (source / "build").string()});
  EXPECT_EQ(built.code, 0) << built.output;
  EXPECT_THAT(built.output, Not(HasSubstr("warning")));
  const auto commands = text_of(source / "build/compile_commands.json");
  EXPECT_THAT(commands, HasSubstr("std=gnu++20"));
  for (const auto* flag : {" -W", "-fPIC", "-fpch"}) EXPECT_THAT(commands, Not(HasSubstr(flag)));
  const auto exported = text_of(installed.prefix() / "lib/cmake/Capstan/Capstan-client.cmake");
  for (const auto* property : {"COMPILE_OPTIONS", "LINK_OPTIONS", "LINK_LIBRARIES", "COMPILE_DEFINITIONS"})
    EXPECT_THAT(exported, Not(HasSubstr(property)));
}

TEST(Package, NamesAComponentThatItDoesNotHave) {
  const Installation installed;
  const auto missing = configured(installed, "find_package(Capstan REQUIRED COMPONENTS client nonsense)\n");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.output, HasSubstr("this installation of Capstan has no component \"nonsense\"; it has: "
                                        "client"));
  const auto optional = configured(installed,
                                   "find_package(Capstan REQUIRED OPTIONAL_COMPONENTS nonsense)\n"
                                   "message(\"found: ${Capstan_FOUND} ${Capstan_nonsense_FOUND}\")\n");
  EXPECT_EQ(optional.code, 0) << optional.output;
  EXPECT_THAT(optional.output, HasSubstr("found: 1 "));
}

TEST(Package, IsTheClientWithoutComponents) {
  const Installation installed;
  const auto found = configured(installed,
                                "find_package(Capstan REQUIRED)\n"
                                "get_target_property(type capstan::client TYPE)\n"
                                "message(\"client: ${type}\")\n");
  EXPECT_EQ(found.code, 0) << found.output;
  EXPECT_THAT(found.output, HasSubstr("client: SHARED_LIBRARY"));
}

// Before 1.0 another minor version is another interface; from 1.0 on only another major version is.
TEST(Package, OnlyCompatibleVersionsAreFound) {
  const Installation installed;
  const auto asked = [&](int major, int minor) {
    return configured(installed, "find_package(Capstan " + std::to_string(major) + "." +
                                     std::to_string(minor) + " REQUIRED)\n")
        .code;
  };
  constexpr int kMajor = CAPSTAN_VERSION_MAJOR, kMinor = CAPSTAN_VERSION_MINOR;
  EXPECT_EQ(asked(kMajor, kMinor), 0);
  EXPECT_EQ(asked(kMajor, kMinor + 1), 1);
  EXPECT_EQ(asked(kMajor + 1, 0), 1);
  if (kMinor > 0) {
    EXPECT_EQ(asked(kMajor, kMinor - 1), kMajor == 0 ? 1 : 0);
  }
}

TEST(Package, AnOlderCompilerIsOneClearMessage) {
  const Installation installed;
  const auto old = configured(installed,
                              "set(CMAKE_CXX_COMPILER_LOADED 1)\n"
                              "set(CMAKE_CXX_COMPILER_ID GNU)\n"
                              "set(CMAKE_CXX_COMPILER_VERSION 7.5)\n"
                              "set(CMAKE_CXX_COMPILE_FEATURES cxx_std_14 cxx_std_17)\n"
                              "find_package(Capstan REQUIRED COMPONENTS client)\n");
  EXPECT_EQ(old.code, 1);
  EXPECT_THAT(old.output,
              HasSubstr("Capstan needs C++20, which GNU 7.5 does not have: use GCC 11, Clang 14"));
}

}  // namespace
}  // namespace capstan::testing
