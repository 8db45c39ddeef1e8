// The headers of include/capstan/, as a user's compiler sees them.

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include <gmock/gmock.h>

#include "library/shell.h"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kInclude = fs::path(CAPSTAN_SOURCE_DIR) / "include";

std::set<std::string> headers() {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(kInclude / "capstan"))
    if (entry.is_regular_file()) found.insert("capstan/" + entry.path().filename().string());
  return found;
}

// The included names of a header, with brackets or quotes.
std::set<std::string> includes(const std::string& header) {
  const std::regex form(R"(^#include ([<"][^>"]+[>"]))");
  std::set<std::string> found;
  std::ifstream in(kInclude / header);
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (std::regex_search(line, match, form)) found.insert(match[1]);
  return found;
}

// Compiles a file that includes the header, and once more, with only include/ in the path.
ShellResult compile(const std::string& compiler, const std::string& flags, const std::string& header) {
  const auto line = "#include <" + header + ">\\n";
  return shell("printf '" + line + line + "' | " + compiler + " " + flags + " -fsyntax-only -x c++ -I" +
               shell_word(kInclude.string()) + " -");
}

// GCC, and Clang if this machine has it.
std::vector<std::string> compilers() {
  std::vector<std::string> found = {"g++"};
  if (shell("command -v clang++").code == 0) found.emplace_back("clang++");
  return found;
}

TEST(Headers, CompileAloneWithoutWarnings) {
  ASSERT_GE(headers().size(), 8u);
  for (const auto& compiler : compilers()) {
    for (const auto& header : headers()) {
      const auto result = compile(compiler, "-std=c++20 -Wall -Wextra -Wpedantic -Werror", header);
      EXPECT_EQ(result.code, 0) << compiler << ", " << header << ": " << result.output;
    }
  }
}

// One line that says what is needed, then the compiler ends without other errors.
TEST(Headers, AnOlderStandardIsOneClearLine) {
  for (const auto& compiler : compilers()) {
    for (const auto& header : headers()) {
      const auto result = compile(compiler, "-std=c++17", header);
      EXPECT_EQ(result.code, 1) << compiler << ", " << header;
      EXPECT_THAT(result.output, HasSubstr("Capstan needs C++20: compile with -std=c++20 and GCC 11"));
      const std::regex error(R"([^l] error: )");
      EXPECT_EQ(std::distance(std::sregex_iterator(result.output.begin(), result.output.end(), error), {}), 1)
          << result.output;
    }
  }
}

TEST(Headers, IncludeOnlyEachOtherAndTheStandardLibrary) {
  const std::regex standard("<[a-z_0-9]+>");
  for (const auto& header : headers()) {
    for (auto name : includes(header)) {
      if (header == "capstan/cxx20.h" || std::regex_match(name, standard)) continue;
      EXPECT_TRUE(headers().contains(name.substr(1, name.size() - 2))) << header << " includes " << name;
    }
  }
}

TEST(Headers, EachBeginsWithTheCheckOfTheStandard) {
  for (const auto& header : headers()) {
    if (header == "capstan/cxx20.h") continue;
    std::ifstream in(kInclude / header);
    std::string line;
    while (std::getline(in, line) && !line.starts_with("#include")) {
    }
    EXPECT_EQ(line, "#include \"capstan/cxx20.h\"") << header;
  }
}

TEST(Headers, OneIncludesAllOfTheClient) {
  std::set<std::string> others;
  // Those of tasks belong to capstan/torch/task.h.
  const std::set<std::string> apart = {"capstan/capstan.h", "capstan/metric.h", "capstan/samples.h",
                                       "capstan/step_phase.h"};
  for (const auto& header : headers())
    if (!apart.contains(header)) others.insert("\"" + header + "\"");
  EXPECT_EQ(includes("capstan/capstan.h"), others);
}

}  // namespace
}  // namespace capstan::testing
