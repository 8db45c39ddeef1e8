#include "capstan/lab/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/resolve.h"
#include "capstan/strategy/strategy.h"
#include "capstan/user_error.h"

#include "lab/registry_with_trainer.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ExperimentFile : public ::testing::Test {
 protected:
  Experiment read(const std::string& text) {
    write_file(folder_ / "mine.toml", text);
    return read_experiment(folder_ / "mine.toml");
  }
  // Without the folder.
  std::string error_of(const std::string& text) {
    try {
      (void)read(text);
    } catch (const UserError& error) {
      const std::string message = error.what();
      const auto folder = (folder_ / "").string();
      EXPECT_TRUE(message.starts_with(folder)) << message;
      return message.substr(std::min(folder.size(), message.size()));
    }
    return "";
  }
  const TemporaryFolder folder_;
};

std::vector<std::string> names(const std::vector<Case>& cases) {
  std::vector<std::string> out;
  for (const auto& each : cases) out.push_back(each.name);
  return out;
}

TEST_F(ExperimentFile, KeysAreOptionsWithDashesOrUnderscores) {
  const auto e =
      read("description = \"what\"\nbatch_size = 5\nrpc-timeout = 3\ntrainers = 4\ntimers = false\n");
  EXPECT_EQ(e.name, "mine");
  EXPECT_EQ(e.description, "what");
  const auto cases = e.cases();
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].name, "mine");
  EXPECT_THAT(cases[0].axis, IsEmpty());
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& option : cases[0].given) given.emplace_back(option.name, option.text);
  EXPECT_THAT(given, ElementsAre(Pair("batch-size", "5"), Pair("rpc-timeout", "3"), Pair("ntrainer", "4"),
                                 Pair("timers", "false")));
  EXPECT_THAT(cases[0].given[1].place, HasSubstr("mine.toml:3"));
}

TEST_F(ExperimentFile, ArraysMakeTheProduct) {
  const auto e = read("trainers = [1, 2]\nbatch_size = 8\nserver = [\"A\", \"B\"]\n");
  const auto cases = e.cases();
  EXPECT_THAT(names(cases), ElementsAre("mine [trainers=1, server=A]", "mine [trainers=1, server=B]",
                                        "mine [trainers=2, server=A]", "mine [trainers=2, server=B]"));
  EXPECT_EQ(cases[2].axis, (report::LabOptions{{"trainers", std::int64_t{2}}, {"server", std::string("A")}}));
  EXPECT_EQ(cases[2].given.size(), 3u);
  EXPECT_THAT(names(e.cases({"ntrainer"})), ElementsAre("mine [server=A]", "mine [server=B]"));
  EXPECT_THAT(names(e.cases({"ntrainer", "server"})), ElementsAre("mine"));
}

TEST_F(ExperimentFile, AnArrayOfOneStillVaries) {
  EXPECT_THAT(names(read("batch-size = [8]\n").cases()), ElementsAre("mine [batch_size=8]"));
}

TEST_F(ExperimentFile, WrongKeysAndValuesAreRefusedWithTheirLine) {
  EXPECT_EQ(error_of("\nbatchsize = 3\n"), "mine.toml:2: batchsize: unknown key (did you mean batch-size?)");
  EXPECT_EQ(error_of("epochs = \"3\"\n"), "mine.toml:1: epochs should be a whole number");
  EXPECT_EQ(error_of("epochs = 1.5\n"), "mine.toml:1: epochs should be a whole number");
  EXPECT_EQ(error_of("trainer = 3\n"), "mine.toml:1: trainer should be a text");
  EXPECT_EQ(error_of("trainer = \"\"\n"), "mine.toml:1: trainer should be a text");
  EXPECT_EQ(error_of("lr = \"a\"\n"), "mine.toml:1: lr should be a number");
  EXPECT_EQ(error_of("timers = 1\n"), "mine.toml:1: timers should be true or false");
  EXPECT_EQ(error_of("description = 1\n"), "mine.toml:1: description should be a text");
  EXPECT_EQ(error_of("ntrainer = [1, 200]\n"),
            "mine.toml:1: ntrainer: should be a whole number from 0 to 128, not 200");
  EXPECT_EQ(error_of("ntrainer = []\n"), "mine.toml:1: ntrainer should have a value");
  EXPECT_EQ(error_of("ntrainer = [1, 1]\n"), "mine.toml:1: ntrainer has 1 twice");
  EXPECT_EQ(error_of("ntrainer = [[1], [2]]\n"), "mine.toml:1: ntrainer should be a whole number");
  EXPECT_EQ(error_of("[table]\nepochs = 1\n"), "mine.toml:1: table: unknown key");
}

TEST_F(ExperimentFile, AKeyMayAppearOnceUnderAnyName) {
  EXPECT_THAT(error_of("epochs = 1\nepochs = 2\n"), HasSubstr("mine.toml:2: "));
  EXPECT_EQ(error_of("ntrainer = 1\ntrainers = 2\n"),
            "mine.toml:2: trainers is the same option as ntrainer, which the file has already");
  EXPECT_EQ(error_of("batch_size = 1\nbatch-size = 2\n"),
            "mine.toml:2: batch-size is the same option as batch_size, which the file has already");
}

TEST_F(ExperimentFile, AHugeProductIsRefused) {
  std::string many = "[1";
  for (int i = 2; i <= 100; ++i) many += ", " + std::to_string(i);
  many += "]";
  const auto e = read("ntrainer = " + many + "\nepochs = [1, 2, 3]\n");
  EXPECT_THROW((void)e.cases(), UserError);
}

TEST_F(ExperimentFile, PathsAreRelativeToTheFile) {
  const auto cases = read("data-config-path = \"sub/d.json\"\n").cases();
  EXPECT_EQ(cases[0].given[0].text, (folder_ / "sub/d.json").string());
}

TEST_F(ExperimentFile, AFileIsFoundByItsPath) {
  write_file(folder_ / "own.toml", "epochs = 3\n");
  EXPECT_EQ(find_experiment((folder_ / "own.toml").string()).name, "own");
  EXPECT_THAT([&] { (void)find_experiment((folder_ / "none.toml").string()); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("none.toml: cannot be read")));
}

TEST(Experiments, AnUnknownNameComesWithTheNearest) {
  EXPECT_THAT([] { (void)find_experiment("ddp_cpu_rcp"); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("did you mean ddp_cpu_rpc?")));
}

// All that PyTorch's benchmark has, those that need CUDA devices included; one per strategy; and others.
TEST(Experiments, AllAreHereAndCanBeResolved) {
  std::set<std::string> supported, unsupported;
  for (const auto& experiment : all_experiments()) {
    EXPECT_FALSE(experiment.description.empty()) << experiment.name;
    for (const auto& each : experiment.cases()) {
      const auto r = resolve({each.given}, registry_with("DdpTrainer"));
      EXPECT_THAT(r.notes, IsEmpty());
      (r.unsupported.empty() ? supported : unsupported).insert(experiment.name);
    }
  }
  EXPECT_EQ(unsupported,
            (std::set<std::string>{
                "ddp_nccl_allreduce", "ddp_gloo_nccl_allreduce", "ddp_cuda_rpc", "ddp_batch_cuda_rpc",
                "ddp_cpu_sparse_rpc_nccl_allreduce", "ddp_batch_cpu_sparse_rpc_nccl_allreduce",
                "ddp_cuda_sparse_rpc_nccl_allreduce", "ddp_batch_cuda_sparse_rpc_nccl_allreduce"}));
  std::set<std::string> expected = {"ddp_gloo_dense_allreduce",
                                    "ddp_gloo_allreduce",
                                    "ddp_gloo_hybrid_allreduce",
                                    "ddp_cpu_rpc",
                                    "ddp_batch_cpu_rpc",
                                    "ddp_cpu_sparse_rpc_gloo_allreduce",
                                    "ddp_batch_cpu_sparse_rpc_gloo_allreduce",
                                    "batch_update",
                                    "scaling",
                                    "strategy_single",
                                    "strategy_allreduce"};
  for (const auto& entry : strategy::table()) {
    std::string name = "strategy_" + std::string(entry.name);
    std::ranges::replace(name, '-', '_');
    expected.insert(name);
  }
  EXPECT_EQ(supported, expected);
}

TEST(Experiments, ScalingIsAMatrix) {
  EXPECT_EQ(find_experiment("scaling").cases().size(), 6u);
}

TEST(Experiments, TheListHasNamesAndDescriptionsInEightyColumns) {
  const auto text = experiments_text();
  EXPECT_THAT(text, HasSubstr("ddp_cpu_rpc                 DDP: all gradients through a server\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace capstan::lab
