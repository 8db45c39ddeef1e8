// Installs this build, moves it, and uses it as others would: its programs, and the example built outside the
// tree.

#include <regex>

#include <gmock/gmock.h>

#include "capstan/version.h"

#include "library/installation.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Installation, NamesNeitherThePrefixNorTheSources) {
  const Installation installed;
  int files = 0;
  for (const auto* folder : {"lib/cmake", "lib/pkgconfig", "include", "share/doc"}) {
    for (const auto& entry : fs::recursive_directory_iterator(installed.prefix() / folder)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      const auto text = text_of(entry.path());
      for (const auto& path : {installed.first_prefix().string(), std::string(CAPSTAN_SOURCE_DIR)})
        EXPECT_EQ(text.find(path), std::string::npos) << entry.path() << " names " << path;
    }
  }
  EXPECT_GT(files, 20);
  EXPECT_TRUE(fs::exists(installed.prefix() / "share/doc/capstan/LICENSE"));
}

TEST(Installation, ProgramsFindEachOther) {
  const Installation installed;
  const auto capstan = installed.program("capstan").string();
  EXPECT_EQ(shell({capstan, "--version"}).output, "capstan " CAPSTAN_VERSION "\n");
  const auto models = shell({capstan, "models", "lenet"});  // executes capstan-tools
  EXPECT_EQ(models.code, 0) << models.output;
  EXPECT_THAT(models.output, HasSubstr("20x1x5x5"));
  if (!fs::exists(installed.program("capstan-torch"))) return;  // a build without libtorch
  // Executes capstan-torch, which starts capstan as its server.
  const auto trained = shell({capstan, "train", "--workers=1", "--max-steps=2", "--threads=1",
                              "--train-dir=" + (installed.folder() / "run").string()});
  EXPECT_EQ(trained.code, 0) << trained.output;
}

TEST(Installation, TheLibraryExportsItsHeadersOnly) {
  const Installation installed;
  const auto names = shell("nm --dynamic --defined-only --demangle --format=just-symbols " +
                           shell_word((installed.prefix() / "lib/libcapstan-client.so").string()));
  ASSERT_EQ(names.code, 0) << names.output;
  const std::regex declared(R"((typeinfo for |typeinfo name for |vtable for )?)"
                            R"(capstan::(FlatLayout|TensorShape|Worker|Observer|UserError|detail|)"
                            R"(library_version|protocol_version|shape_text)\b.*)");
  std::istringstream lines(names.output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(std::regex_match(line, declared)) << line;
    EXPECT_THAT(line, Not(HasSubstr("Impl::")));
  }
  EXPECT_GT(count, 30);
}

// Worker r's function is ½‖w − (r, r + 1, r + 2, r + 3)‖²: the sum of both has its minimum at the mean.
void runs_to_the_minimum(const Installation& installed, const fs::path& program) {
  const auto token = token_file(installed.folder()).string();
  launch::Child server({{installed.program("capstan").string(), "serve", "--workers=2", "--lr=0.5",
                         "--momentum=0", "--max-steps=60", "--token-file=" + token},
                        {},
                        installed.folder() / "server.log",
                        true,
                        false});
  const auto listening = server.read_line(in_seconds(30)).value_or("");
  const std::string ready = "listening on ";
  ASSERT_TRUE(listening.starts_with(ready)) << text_of(installed.folder() / "server.log");
  const auto worker = [&](int number) {
    return launch::Child({{program.string(), listening.substr(ready.size()), token},
                          {"LD_LIBRARY_PATH=" + (installed.prefix() / "lib").string()},
                          installed.folder() / ("worker-" + std::to_string(number) + ".log"),
                          true,
                          false});
  };
  auto first = worker(1), second = worker(2);
  std::set<std::string> lines;
  for (auto* child : {&first, &second}) {
    lines.insert(child->read_line(in_seconds(60)).value_or(""));
    const auto exit = child->wait(in_seconds(60));
    EXPECT_TRUE(exit && exit->code == 0);
  }
  EXPECT_EQ(lines, (std::set<std::string>{"worker 0 of 2, version 60: w = 0.5000 1.5000 2.5000 3.5000",
                                          "worker 1 of 2, version 60: w = 0.5000 1.5000 2.5000 3.5000"}));
  const auto exit = server.wait(in_seconds(60));
  EXPECT_TRUE(exit && exit->code == 0) << text_of(installed.folder() / "server.log");
}

TEST(PushPullExample, BuiltByCMakeFindsTheMinimum) {
  const Installation installed;
  const auto source = installed.example("push_pull");
  const auto configured = installed.configure(source);
  ASSERT_EQ(configured.code, 0) << configured.output;
  const auto built = shell({"cmake", "--build", (source / "build").string()});
  ASSERT_EQ(built.code, 0) << built.output;
  runs_to_the_minimum(installed, source / "build/push_pull");
}

TEST(PushPullExample, BuiltByPkgConfigFindsTheMinimum) {
  const Installation installed;
  const auto source = installed.example("push_pull");
  const auto built =
      shell("cd " + shell_word(source.string()) +
            " && flags=$(PKG_CONFIG_PATH=" + shell_word((installed.prefix() / "lib/pkgconfig").string()) +
            " pkg-config --cflags --libs capstan-client) && eval \"" CAPSTAN_CXX " -std=c++20 " +
            Installation::sanitizer() + " main.cpp -o push_pull $flags\"");
  ASSERT_EQ(built.code, 0) << built.output;
  runs_to_the_minimum(installed, source / "push_pull");
  // Wrong arguments: one line and exit code 2.
  const auto wrong = shell("LD_LIBRARY_PATH=" + shell_word((installed.prefix() / "lib").string()) + " " +
                           shell_word((source / "push_pull").string()) + " nonsense " +
                           shell_word(token_file(installed.folder()).string()));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.output,
            "push_pull: \"nonsense\" is not an address: it should look like 127.0.0.1:7000 or host:7000\n");
}

TEST(PushPullExample, FitsOnOnePage) {
  EXPECT_LE(lines_of(CAPSTAN_SOURCE_DIR "/examples/push_pull/main.cpp"), 60);
}

}  // namespace
}  // namespace capstan::testing
