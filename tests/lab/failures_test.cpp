// What a user sees when a run of `capstan bench ps` fails: real trainers and servers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/program.h"
#include "lab/small_plan.h"

namespace capstan::lab {
namespace {

using ::testing::AllOf;
using testing::Flags;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::Program;
using ::testing::StartsWith;

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

class Failures : public ::testing::Test {
 protected:
  // Runs for minutes: a thousand measured runs of a small model.
  std::unique_ptr<Program> start(const Flags& more = {}) {
    (void)testing::small_plan(folder_.path());
    Flags flags = {"bench",
                   "ps",
                   "--data=Data",
                   "--model=Sparse",
                   "--data-config-path=" + (folder_ / "data.json").string(),
                   "--model-config-path=" + (folder_ / "models.json").string(),
                   "--batch-size=2",
                   "--epochs=20",
                   "--repeat=1000",
                   "--json",
                   "--save=" + (folder_ / "saved").string()};
    flags.insert(flags.end(), more.begin(), more.end());
    return std::make_unique<Program>(folder_, flags);
  }
  // Waits for the third measured run.
  void await_measured_run(Program& program) {
    const auto begun = [&] { return std::filesystem::exists(folder_ / "saved/run-2/trainer-1.safetensors"); };
    ASSERT_TRUE(testing::eventually(begun)) << program.errors();
  }
  static pid_t process(const Program& program, const std::string& role) {
    const auto found = program.children(role);
    EXPECT_EQ(found.size(), 1u) << role;
    return found.empty() ? -1 : found[0];
  }
  // One line, which begins so; the result has it, and the runs before.
  static void expect_failure(Program& program, int code, const std::string& begin) {
    EXPECT_EQ(program.exit_code(), code) << program.errors();
    EXPECT_THAT(program.errors(), StartsWith("capstan: DdpTrainer rpc_hook, 2 trainers, 1 server: " + begin));
    EXPECT_EQ(lines_of(program.errors()), 1u) << program.errors();
    const auto result = program.json();
    EXPECT_EQ(result.value("ok", true), false);
    const auto& configuration = result.at("configurations").at(0);
    EXPECT_THAT(configuration.at("error").get<std::string>(), StartsWith(begin));
    EXPECT_GE(configuration.at("runs").size(), 1u);
  }
  // The error of a run of the program with faulty plug-ins, after "lab_faulty_plugins: ".
  std::string fault(int code, const Flags& more) {
    Flags flags = {"--data=Ones", "--model=Linear", "--batch-size=4", "--repeat=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    Program program(folder_, flags, {}, {}, "lab_faulty_plugins");
    EXPECT_EQ(program.exit_code(), code) << program.errors();
    EXPECT_EQ(lines_of(program.errors()), 1u) << program.errors();
    return program.errors();
  }

  const testing::Folder folder_;
};

TEST_F(Failures, ATrainerThatIsKilledInAMeasuredRunFailsIt) {
  const auto program = start();
  await_measured_run(*program);
  const auto others = program->children("--as-");
  ::kill(process(*program, "--as-trainer=1"), SIGKILL);
  expect_failure(*program, 3, "trainer 1: killed by signal 9");
  EXPECT_EQ(others.size(), 3u);
  EXPECT_TRUE(testing::all_ended(others));
}

TEST_F(Failures, AServerThatIsKilledFailsTheRun) {
  const auto program = start();
  await_measured_run(*program);
  ::kill(process(*program, "--as-server=0"), SIGKILL);
  expect_failure(*program, 3, "server 2: killed by signal 9");
}

TEST_F(Failures, AStoppedTrainerIsEnded) {
  const auto program = start();
  await_measured_run(*program);
  ::kill(process(*program, "--as-trainer=0"), SIGSTOP);
  expect_failure(*program, 3, "trainer 0: was stopped (SIGSTOP)");
}

TEST_F(Failures, CtrlCEndsAllProcessesAndKeepsTheRuns) {
  const auto program = start();
  await_measured_run(*program);
  const auto others = program->children("--as-");
  program->child().signal(SIGINT);
  EXPECT_EQ(program->exit_code(), 130);
  EXPECT_EQ(lines_of(program->errors()), 1u) << program->errors();
  EXPECT_THAT(program->errors(), HasSubstr("interrupted"));
  EXPECT_GE(program->json().at("configurations").at(0).at("runs").size(), 1u);
  EXPECT_TRUE(testing::all_ended(others));
}

TEST_F(Failures, NoProcessOutlivesTheLauncher) {
  const auto program = start();
  await_measured_run(*program);
  const auto others = program->children("--as-");
  EXPECT_EQ(others.size(), 3u);
  program->child().signal(SIGKILL);
  EXPECT_TRUE(testing::all_ended(others));
}

TEST_F(Failures, AFileThatCannotBeWrittenCostsNoResult) {
  const auto run = [&](const std::string& csv) {
    return std::make_unique<Program>(
        folder_, Flags{"bench", "ps", "--data=RandomVectors", "--model=LinearModel", "--criterion=mse",
                       "--quick", "--json", "--csv=" + csv, "--html=" + (folder_ / "page.html").string()});
  };
  const auto full = run("/dev/full");
  EXPECT_EQ(full->exit_code(), 1);
  EXPECT_EQ(full->errors(), "capstan: --csv /dev/full: No space left on device\n");
  EXPECT_EQ(full->json().at("configurations").at(0).at("runs").size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "page.html"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  const auto wrong = run(folder_.path().string());
  EXPECT_EQ(wrong->exit_code(), 2);
  EXPECT_THAT(wrong->errors(), HasSubstr(": is a folder"));
}

TEST_F(Failures, WrongFilesAreOneLineWithFileAndPlace) {
  const auto error = [&](const std::string& models, const Flags& more = {}) {
    const auto file = folder_ / "models.json";
    std::ofstream(file) << models;
    Flags flags = {"bench", "ps", "--quick", "--model=M", "--model-config-path=" + file.string()};
    flags.insert(flags.end(), more.begin(), more.end());
    Program program(folder_, flags);
    EXPECT_EQ(program.exit_code(), 2) << program.errors();
    EXPECT_EQ(lines_of(program.errors()), 1u) << program.errors();
    return program.errors();
  };
  const std::string values = R"({"num_embeddings": 8, "embedding_dim": 4, "dense_input_size": 4,
    "dense_output_size": 1024, "dense_layers_count": 1, "sparse": true})";
  const auto entry = R"("M": {"model_class": "DummyModel", "configurations": )" + values + "}";
  EXPECT_THAT(error("{" + entry + ",}"),
              AllOf(HasSubstr("models.json"), HasSubstr("a comma before } is not valid")));
  EXPECT_THAT(error("{" + entry + ", " + entry + "}"), HasSubstr("models.json: the name M appears twice"));
  // Ids of DummyData are up to 1023.
  EXPECT_THAT(error("{" + entry + "}"),
              AllOf(HasSubstr("an input of 8x1024 Long"), HasSubstr("range 0 to 8")));
}

TEST_F(Failures, AModelAndDataThatDoNotFitNameTheShapes) {
  const auto error = [&](const Flags& more) {
    Flags flags = {"bench", "ps", "--quick"};
    flags.insert(flags.end(), more.begin(), more.end());
    Program program(folder_, flags);
    EXPECT_EQ(program.exit_code(), 2) << program.errors();
    EXPECT_EQ(lines_of(program.errors()), 1u) << program.errors();
    return program.errors();
  };
  EXPECT_THAT(error({"--model=DummyModel", "--data=digits"}), HasSubstr("8"));
  EXPECT_THAT(error({"--model=lenet", "--data=DummyData"}), HasSubstr("1024"));
}

TEST_F(Failures, APlugInThatThrowsEndsTheRunWithItsWords) {
  EXPECT_THAT(
      fault(1, {"--trainer=ThrowingTrainer"}),
      "lab_faulty_plugins: ThrowingTrainer rpc_hook, 2 trainers, 1 server: trainer 1: the backward pass "
      "failed: out of luck\n");
  EXPECT_THAT(fault(1, {"--trainer=StrangeTrainer"}), HasSubstr(": trainer 1: an exception"));
  EXPECT_THAT(fault(2, {"--trainer=RefusingTrainer"}),
              HasSubstr(": trainer 1: most 0: should be positive\n"));
  EXPECT_THAT(fault(1, {"--server=FaultyServer"}),
              HasSubstr(": server 2: averaging bucket 0 of batch 3 has failed: batch 3\n"));
  EXPECT_THAT(fault(1, {"--model=FaultyModel"}), HasSubstr("the model failed: the fifth forward pass\n"));
  EXPECT_THAT(fault(1, {"--data=FaultyData"}), HasSubstr("the data failed: sample 40\n"));
  EXPECT_THAT(fault(2, {"--create-criterion=faulty"}), HasSubstr("no loss today\n"));
}

TEST_F(Failures, APlugInThatEndsItsProcessIsALostTrainer) {
  EXPECT_THAT(fault(3, {"--trainer=AbortingTrainer"}), HasSubstr(": trainer 1: killed by signal 6"));
  std::filesystem::create_directory(folder_ / "saved");
  std::ofstream(folder_ / "saved/trainer-1.log") << "of an earlier measurement\n";
  EXPECT_THAT(
      fault(3, {"--trainer=CrashingTrainer", "--save=" + (folder_ / "saved").string()}),
      HasSubstr(": trainer 1: killed by signal 11 (Segmentation fault); its last line: about to crash\n"));
  EXPECT_EQ(testing::text_of(folder_ / "saved/trainer-1.log"), "about to crash\n");
  EXPECT_THAT(fault(1, {"--trainer=LeavingTrainer"}),
              HasSubstr(": trainer 1: ended before its work was done"));
}

}  // namespace
}  // namespace capstan::lab
