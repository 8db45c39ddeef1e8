#include "capstan/cli/bench_ps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "lab/registry_with_trainer.h"

namespace capstan::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const LabProgram kProgram{"mine", {}};

// What it prints; the error's text if it throws.
std::string output_of(const Arguments& arguments, const LabProgram& program = kProgram) {
  ::testing::internal::CaptureStdout();
  std::string error;
  try {
    EXPECT_EQ(run_lab(arguments, lab::registry_with("DdpTrainer"), program), kSuccess);
  } catch (const UserError& wrong) {
    error = wrong.what();
  }
  std::fflush(stdout);
  const auto text = ::testing::internal::GetCapturedStdout();
  return error.empty() ? text : error;
}

// PyTorch's benchmark has these.
TEST(BenchPs, HasAllOptionsOfThePredecessor) {
  const auto help = output_of({"--help"});
  for (const auto* name : {"master-addr",
                           "master-port",
                           "filestore",
                           "ntrainer",
                           "ncudatrainer",
                           "nserver",
                           "ncudaserver",
                           "trainer",
                           "server",
                           "data",
                           "model",
                           "data-config-path",
                           "model-config-path",
                           "server-config-path",
                           "trainer-config-path",
                           "backend",
                           "epochs",
                           "batch-size",
                           "rpc-timeout",
                           "torch-seed",
                           "cuda-seed",
                           "preprocess-data",
                           "create-criterion",
                           "create-ddp-model",
                           "hook-state",
                           "ddp-hook",
                           "iteration-step"})
    EXPECT_THAT(help, HasSubstr(std::string("--") + name)) << name;
  EXPECT_THAT(help, Not(HasSubstr("--as-trainer")));
}

TEST(BenchPs, HelpIsEightyColumnsWideAndNamesTheProgram) {
  const auto help = output_of({"--help"}, {"capstan", {"bench", "ps"}});
  EXPECT_THAT(help, HasSubstr("Usage: capstan bench ps [FLAGS]\n"));
  EXPECT_THAT(output_of({"--help"}), HasSubstr("Usage: mine [FLAGS]\n"));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(BenchPs, ListsExperiments) {
  EXPECT_THAT(output_of({"--experiment", "list"}), HasSubstr("ddp_cpu_rpc "));
  EXPECT_THAT(output_of({"--experiment", "ddp_cpu_rcp"}), HasSubstr("did you mean ddp_cpu_rpc?"));
}

TEST(BenchPs, WrongOptionsAreKnownBeforeAProcessStarts) {
  EXPECT_EQ(output_of({"--ddp_hook", "rpc_hook", "--nserver=0"}),
            "--nserver 0: the hook rpc_hook needs a server: give 1 or more, or --ddp-hook allreduce_hook");
  EXPECT_EQ(output_of({"--ntrainers", "2"}),
            "unknown flag --ntrainers, did you mean --ntrainer? (see mine --help)");
  EXPECT_EQ(output_of({"--repeat", "0"}), "--repeat 0: should be a whole number from 1 to 1000");
  EXPECT_THAT(output_of({"--csv", "/no/such/folder/x.csv"}), HasSubstr("/no/such/folder/x.csv"));
  EXPECT_THAT(output_of({"--html", "/no/such/folder/x.html"}), HasSubstr("/no/such/folder/x.html"));
  EXPECT_THAT(output_of({"--save", "/proc/x"}), HasSubstr("--save /proc/x: "));
  EXPECT_THAT(output_of({"--experiment", "strategy_sync", "--server", "AverageParameterServer"}),
              HasSubstr("the strategy sync has its own server"));
}

}  // namespace
}  // namespace capstan::cli
