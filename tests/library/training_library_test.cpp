// The training library as others use it: the example is built outside the tree with the installed package,
// and its program trains, evaluates and resumes.

#include <regex>

#include <gmock/gmock.h>

#include "library/installation.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The example, and the installation that it is built with.
class OwnModel : public ::testing::Test {
 protected:
  // Its exit code, and what it prints on both streams.
  ShellResult run(const std::vector<std::string>& arguments, const std::string& program = {}) const {
    std::string words = "cd " + shell_word(folder_ / "");
    words += " && LD_LIBRARY_PATH=" + shell_word((installed_.prefix() / "lib").string()) + " ";
    words += shell_word(program.empty() ? program_.string() : program);
    for (const auto& argument : arguments) words += " " + shell_word(argument);
    return shell(words);
  }
  void build(const std::string& example = "own_model") {
    const auto source = installed_.example(example);
    const auto configured = installed_.configure(source);
    ASSERT_EQ(configured.code, 0) << configured.output;
    const auto built = shell({"cmake", "--build", (source / "build").string()});
    ASSERT_EQ(built.code, 0) << built.output;
    EXPECT_THAT(built.output, Not(HasSubstr("warning")));
    commands_ = text_of(source / "build/compile_commands.json");
    program_ = source / "build" / example;
    source_ = source;
  }

  const Folder folder_;
  const Installation installed_;
  fs::path program_, source_;
  std::string commands_;
};

// The last one of a text.
double accuracy_in(const std::string& text) {
  const std::string name = "test accuracy ";
  const auto at = text.rfind(name);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
}

// One test, because the build takes longer than all that follows.
TEST_F(OwnModel, TrainsEvaluatesAndResumes) {
  ASSERT_NO_FATAL_FAILURE(build());
  for (const auto* flag : {" -W", "-fPIC", "-fpch", "-Werror"}) EXPECT_THAT(commands_, Not(HasSubstr(flag)));

  const auto help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const auto* command : {"train", "work", "eval", "serve"})
    EXPECT_THAT(help.output, HasSubstr(std::string("\n  ") + command + " "));

  // The spirals can be separated; guessing gives 50 %.
  const auto trained =
      run({"train", "--workers=2", "--strategy=sync", "--epochs=30", "--threads=1", "--train-dir=run"});
  ASSERT_EQ(trained.code, 0) << trained.output;
  EXPECT_GT(accuracy_in(trained.output), 90) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("own_model on spirals: "));
  for (const auto* file : {"config.toml", "weights.safetensors", "worker-1.log", "server-0.log"})
    EXPECT_TRUE(fs::exists(folder_ / "run" / file)) << file;

  const auto evaluated = run({"eval", "--train-dir=run", "--once"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.output;
  EXPECT_GT(accuracy_in(evaluated.output), 90) << evaluated.output;

  // 2000 samples, 2 workers, batches of 32: 32 updates per epoch.
  const auto resumed = run({"train", "--resume=run", "--epochs=31"});
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resuming from step 960"));
  EXPECT_THAT(resumed.output, HasSubstr("992 updates"));

  const auto grouped = run({"train", "--strategy=allreduce", "--workers=2", "--epochs=1", "--threads=1"});
  EXPECT_EQ(grouped.code, 0) << grouped.output;

  const auto wrong = run({"train", "--network=lenet"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_EQ(wrong.output, "own_model: unknown flag --network (see own_model train --help)\n");
  const auto other = run({"eval", "--train-dir=run", "--once"}, installed_.program("capstan").string());
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.output,
            "capstan: the task is one of the program own_model: use own_model instead of capstan\n");
  // A renamed program is another one.
  const auto copy = folder_ / "renamed";
  fs::copy(program_, copy);
  const auto renamed = run({"train", "--resume=run", "--epochs=32"}, copy.string());
  EXPECT_EQ(renamed.code, 2);
  EXPECT_THAT(renamed.output, HasSubstr("renamed: "));
}

// One of each plug-in, beside Capstan's own.
TEST_F(OwnModel, TheExampleOfLabPluginsRunsItsExperiment) {
  ASSERT_NO_FATAL_FAILURE(build("lab_plugin"));
  const auto experiment = (source_ / "experiments/median.toml").string();
  const auto ran = run({"--experiment", experiment, "--repeat=1", "--json", "--html=page.html"});
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr(R"("name":"median [trainers=3, server=MedianServer]")"));
  EXPECT_TRUE(fs::exists(folder_ / "page.html"));

  const auto shown = run({"--experiment", experiment, "--repeat=1", "--ntrainer=3", "--server=MedianServer"});
  ASSERT_EQ(shown.code, 0) << shown.output;
  // 960 points in batches of 16, 3 trainers, 2 epochs: 40 steps of one bucket.
  EXPECT_THAT(shown.output, ::testing::ContainsRegex("clip +ms +40 "));

  const auto sparse = run({"--trainer=DdpTrainer", "--server=MedianServer", "--quick"});
  EXPECT_EQ(sparse.code, 2) << sparse.output;
  EXPECT_THAT(sparse.output, HasSubstr("MedianServer takes dense gradients"));
}

TEST_F(OwnModel, TheLibraryExportsItsHeadersOnly) {
  const auto names = shell("nm --dynamic --defined-only --demangle --format=just-symbols " +
                           shell_word((installed_.prefix() / "lib/libcapstan-training.so").string()));
  ASSERT_EQ(names.code, 0) << names.output;
  const std::regex declared(
      R"((typeinfo for |typeinfo name for |vtable for )?)"
      R"(capstan::(Task|ModuleTask|TensorTask|BatchStream|UserError|detail::start|detail::start_lab|)"
      R"(lab::(Configuration|Data|DdpTrainerBase|MetricsLogger|Model|Server|Trainer|deal_batches))\b.*)");
  std::istringstream lines(names.output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_TRUE(std::regex_match(line, declared)) << line;
  EXPECT_GT(count, 20);
}

// With libtorch's headers, and the check of the standard first.
TEST(TrainingHeaders, CompileAlone) {
  const auto include = fs::path(CAPSTAN_SOURCE_DIR) / "include";
  int headers = 0;
  for (const auto& entry : fs::directory_iterator(include / "capstan/torch")) {
    ++headers;
    const auto text = text_of(entry.path());
    EXPECT_LT(text.find("#include \"capstan/cxx20.h\""), text.find("#include <")) << entry.path();
    const auto compiled = shell("echo '#include <capstan/torch/" + entry.path().filename().string() +
                                ">' | " CAPSTAN_CXX " -std=c++20 -Wall -Wextra -fsyntax-only -x c++ -I" +
                                shell_word(include.string()) + " -idirafter " CAPSTAN_TORCH_INCLUDES " -");
    EXPECT_EQ(compiled.code, 0) << compiled.output;
    EXPECT_EQ(compiled.output, "") << entry.path();
  }
  EXPECT_GE(headers, 5);
}

TEST(OwnModelExample, FitsOnOnePage) {
  EXPECT_LE(lines_of(CAPSTAN_SOURCE_DIR "/examples/own_model/main.cpp"), 60);
}

}  // namespace
}  // namespace capstan::testing
