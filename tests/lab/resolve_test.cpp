#include "capstan/lab/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/names.h"
#include "capstan/user_error.h"

#include "lab/registry_with_trainer.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Pairs = std::vector<std::pair<std::string, std::string>>;

Resolved resolved(const Pairs& given) {
  std::vector<GivenOption> layer;
  for (const auto& [name, text] : given) layer.push_back({name, text, ""});
  return resolve({layer}, registry_with("DdpTrainer"));
}

// The message of the error; empty if there is none.
std::string error_of(const Pairs& given) {
  try {
    (void)resolved(given);
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(Resolve, WithoutOptionsTwoTrainersUseOneServer) {
  const auto r = resolved({});
  EXPECT_EQ(r.plan.trainers, 2u);
  EXPECT_EQ(r.plan.servers, 1u);
  EXPECT_EQ(r.plan.trainer, "DdpTrainer");
  EXPECT_EQ(r.plan.server, "AverageParameterServer");
  EXPECT_EQ(r.plan.hook, "rpc_hook");
  EXPECT_EQ(r.plan.data, "DummyData");
  EXPECT_EQ(r.plan.model, "DummyModelSparse");
  EXPECT_EQ(r.plan.data_config.filename(), "data_configurations.json");
  EXPECT_TRUE(r.plan.data_config.is_absolute());
  EXPECT_THAT(r.unsupported, IsEmpty());
  EXPECT_THAT(r.notes, IsEmpty());
}

TEST(Resolve, TheHookAndTheNumberOfServersFollowFromEachOther) {
  EXPECT_EQ(resolved({{"nserver", "0"}}).plan.hook, "allreduce_hook");
  EXPECT_EQ(resolved({{"nserver", "0"}}).plan.server, "");
  EXPECT_EQ(resolved({{"nserver", "3"}}).plan.hook, "rpc_hook");
  for (const auto* hook : {"allreduce_hook", "hybrid_hook"})
    EXPECT_EQ(resolved({{"ddp-hook", hook}}).plan.servers, 0u) << hook;
  for (const auto* hook : {"rpc_hook", "sparse_rpc_hook"})
    EXPECT_EQ(resolved({{"ddp-hook", hook}}).plan.servers, 1u) << hook;
}

TEST(Resolve, OlderTrainersAreDdpTrainerWithAHook) {
  const std::pair<const char*, const char*> known[] = {{"DdpNcclTrainer", "allreduce_hook"},
                                                       {"DdpSparseRpcTrainer", "sparse_rpc_hook"},
                                                       {"DdpSparseDenseRpcTrainer", "rpc_hook"}};
  for (const auto& [name, hook] : known) {
    const auto plan = resolved({{"trainer", name}}).plan;
    EXPECT_EQ(plan.trainer, "DdpTrainer");
    EXPECT_EQ(plan.hook, hook);
    EXPECT_EQ(plan.servers, hook == std::string("allreduce_hook") ? 0u : 1u);
  }
  EXPECT_THAT(
      error_of({{"trainer", "DdpNcclTrainer"}, {"ddp-hook", "rpc_hook"}}),
      "--ddp-hook rpc_hook: the trainer DdpNcclTrainer has allreduce_hook; give DdpTrainer for another "
      "hook");
}

TEST(Resolve, AStrategyHasItsOwnServer) {
  const auto plan = resolved({{"trainer", "ssp:3"}}).plan;
  EXPECT_EQ(plan.trainer, "ssp:3");
  EXPECT_EQ(plan.server, "ssp:3");
  EXPECT_EQ(plan.servers, 1u);
  EXPECT_EQ(plan.hook, "");
  EXPECT_EQ(resolved({{"trainer", "sync"}, {"server", "sync"}}).plan.server, "sync");
  EXPECT_EQ(resolved({{"server", "async"}}).plan.trainer, "async");
  EXPECT_EQ(resolved({{"trainer", "default=sync,a*=async"}}).plan.server, "default=sync,a*=async");
  EXPECT_THAT(error_of({{"trainer", "sync"}, {"server", "AverageParameterServer"}}),
              "--server AverageParameterServer: the strategy sync has its own server: leave this option out");
  EXPECT_THAT(error_of({{"trainer", "DdpTrainer"}, {"server", "sync"}}),
              "--server sync: is the server of a strategy: give --trainer sync");
  EXPECT_THAT(error_of({{"trainer", "sync"}, {"ddp-hook", "rpc_hook"}}),
              HasSubstr("--ddp-hook rpc_hook: is an option of DdpTrainer"));
  EXPECT_THAT(error_of({{"trainer", "sync"}, {"nserver", "0"}}),
              "--nserver 0: the strategy sync needs a server: give 1 or more");
  EXPECT_THAT(error_of({{"trainer", "ssp:x"}}), HasSubstr("--trainer ssp:x: "));
  EXPECT_THAT(error_of({{"trainer", "batch:3"}}), HasSubstr("--trainer batch:3: "));  // of two trainers
}

TEST(Resolve, StrategiesWithoutServers) {
  const auto single = resolved({{"trainer", "single"}}).plan;
  EXPECT_EQ(single.trainers, 1u);
  EXPECT_EQ(single.servers, 0u);
  EXPECT_EQ(single.server, "");
  const auto group = resolved({{"trainer", "allreduce"}}).plan;
  EXPECT_EQ(group.trainers, 2u);
  EXPECT_EQ(group.servers, 0u);
  EXPECT_EQ(error_of({{"trainer", "single"}, {"ntrainer", "2"}}),
            "--ntrainer 2: the strategy single is one process: give 1");
  EXPECT_EQ(error_of({{"trainer", "allreduce"}, {"nserver", "1"}}),
            "--nserver 1: the strategy allreduce uses no servers: give 0");
}

TEST(Resolve, HooksAndServersThatDoNotFit) {
  EXPECT_EQ(error_of({{"ddp-hook", "rpc_hook"}, {"nserver", "0"}}),
            "--nserver 0: the hook rpc_hook needs a server: give 1 or more, or --ddp-hook allreduce_hook");
  EXPECT_EQ(error_of({{"ddp-hook", "sparse_rpc_hook"}, {"nserver", "0"}}),
            "--nserver 0: the hook sparse_rpc_hook needs a server: give 1 or more, or --ddp-hook "
            "allreduce_hook");
  EXPECT_EQ(error_of({{"ddp-hook", "allreduce_hook"}, {"nserver", "1"}}),
            "--nserver 1: the hook allreduce_hook uses no servers: give 0, or --ddp-hook rpc_hook");
  EXPECT_EQ(error_of({{"ddp-hook", "hybrid_hook"}, {"nserver", "2"}}),
            "--nserver 2: the hook hybrid_hook uses no servers: give 0, or --ddp-hook rpc_hook");
  EXPECT_EQ(
      error_of({{"ddp-hook", "allreduce_hook"}, {"server", "AverageParameterServer"}}),
      "--server AverageParameterServer: the hook allreduce_hook uses no servers: leave this option out, "
      "or give --ddp-hook rpc_hook");
  EXPECT_EQ(error_of({{"nserver", "0"}, {"server", "AverageParameterServer"}}), "");
}

TEST(Resolve, WrongCounts) {
  EXPECT_EQ(error_of({{"ntrainer", "0"}}), "--ntrainer 0: should be at least 1");
  EXPECT_EQ(error_of({{"ntrainer", "129"}}), "--ntrainer 129: should be a whole number from 0 to 128");
  EXPECT_EQ(error_of({{"nserver", "1000000"}}), "--nserver 1000000: should be a whole number from 0 to 128");
  EXPECT_EQ(error_of({{"ntrainer", "2.0"}}), "--ntrainer 2.0: should be a whole number from 0 to 128");
  EXPECT_THAT(error_of({{"epochs", "0"}}), HasSubstr("--epochs 0: "));
  EXPECT_THAT(error_of({{"batch-size", "-1"}}), HasSubstr("--batch-size -1: "));
  EXPECT_THAT(error_of({{"rpc-timeout", "0"}}), HasSubstr("--rpc-timeout 0: "));
}

TEST(Resolve, UnknownNamesComeWithTheNearest) {
  EXPECT_THAT(error_of({{"trainer", "DdpTrianer"}}),
              HasSubstr("--trainer DdpTrianer: unknown trainer, did you mean DdpTrainer?; known: "));
  EXPECT_THAT(error_of({{"trainer", "snyc"}}), HasSubstr("did you mean sync?"));
  EXPECT_THAT(error_of({{"server", "AverageParamServer"}}),
              HasSubstr("--server AverageParamServer: unknown server, did you mean AverageParameterServer?"));
  EXPECT_THAT(error_of({{"data", "DumyData"}}),
              HasSubstr("--data DumyData: unknown data, did you mean DummyData?"));
  EXPECT_THAT(error_of({{"data", "minst"}}), HasSubstr("did you mean mnist?"));
  EXPECT_THAT(error_of({{"model", "DummyModelSparce"}}), HasSubstr("did you mean DummyModelSparse?"));
  EXPECT_THAT(error_of({{"model", "resnt18"}}), HasSubstr("did you mean resnet18?"));
  EXPECT_THAT(error_of({{"ddp-hook", "rpc_hok"}}), HasSubstr("unknown hook, did you mean rpc_hook?"));
  EXPECT_THAT(error_of({{"create-criterion", "ce"}}), HasSubstr("unknown criterion, did you mean cel?"));
  EXPECT_EQ(error_of({{"backend", "mpi"}}), "--backend mpi: should be gloo, nccl or multi");
}

TEST(Resolve, OptionsWithOneValidValueAreChecked) {
  const std::pair<const char*, const char*> valid[] = {{"preprocess-data", "preprocess_dummy_data"},
                                                       {"create-ddp-model", "basic_ddp_model"},
                                                       {"hook-state", "BasicHookState"},
                                                       {"iteration-step", "basic_iteration_step"},
                                                       {"create-optimizer", "sgd_optimizer"}};
  for (const auto& [name, value] : valid) {
    EXPECT_EQ(error_of({{name, value}}), "");
    EXPECT_EQ(error_of({{name, "other"}}), std::string("--") + name + " other: should be " + value);
  }
}

TEST(Resolve, WhatNeedsCudaIsAcceptedAndSaysSo) {
  const auto needs = [](const Pairs& given) { return resolved(given).unsupported; };
  const std::string end = ", which this build of Capstan does not support yet";
  EXPECT_EQ(needs({{"backend", "nccl"}}), "needs CUDA devices (--backend nccl)" + end);
  EXPECT_EQ(needs({{"backend", "multi"}, {"ddp-hook", "hybrid_hook"}}),
            "needs CUDA devices (--backend multi)" + end);
  EXPECT_EQ(needs({{"use-cuda-rpc", "true"}}), "needs CUDA devices (use_cuda_rpc)" + end);
  EXPECT_EQ(needs({{"ncudatrainer", "2"}, {"ncudaserver", "1"}}),
            "needs CUDA devices (--ncudatrainer 2, --ncudaserver 1)" + end);
  EXPECT_EQ(needs({{"ncudatrainer", "2"}, {"ddp-hook", "allreduce_hook"}}),
            "needs CUDA devices (--ncudatrainer 2)" + end);
  EXPECT_EQ(error_of({{"ncudatrainer", "2"}, {"nserver", "1"}}),
            "--ncudatrainer 2: needs --ncudaserver of at least 1");
  EXPECT_EQ(error_of({{"ncudaserver", "1"}}), "--ncudaserver 1: needs --ncudatrainer of at least 1");
  EXPECT_EQ(error_of({{"ntrainer", "2"}, {"ncudatrainer", "2"}, {"ncudaserver", "1"}}),
            "--ntrainer 2: with --ncudatrainer it needs --nserver of at least 1");
}

TEST(Resolve, AFileStoreIsNotNeeded) {
  EXPECT_THAT(resolved({{"filestore", "/tmp/x"}}).notes,
              ElementsAre("--filestore /tmp/x: is not needed: trainers meet at --master-addr"));
}

TEST(Resolve, NetworksAndTasksHaveTheirOwnData) {
  EXPECT_EQ(resolved({{"model", "lenet"}}).plan.data, "digits");
  EXPECT_EQ(resolved({{"model", "lenet"}, {"data", "mnist"}}).plan.data, "mnist");
  EXPECT_EQ(resolved({{"model", "resnet18"}, {"data", "synthetic:3x8x8:10"}}).plan.data,
            "synthetic:3x8x8:10");
  EXPECT_EQ(resolved({{"model", "char-lm"}}).plan.data, "");
}

TEST(Resolve, TheOptimizerIsThatOfAStrategy) {
  EXPECT_EQ(resolved({{"trainer", "sync"}, {"optimizer", "sgd:momentum=0.9"}}).plan.optimizer,
            "sgd:momentum=0.9");
  EXPECT_EQ(error_of({{"optimizer", "adam"}}),
            "--optimizer adam: is an option of strategies; DdpTrainer makes SGD steps");
  EXPECT_THAT(error_of({{"trainer", "sync"}, {"optimizer", "adm"}}), HasSubstr("--optimizer adm: "));
}

TEST(Resolve, LaterLayersOverrideEarlierOnes) {
  const auto r =
      resolve({{{"epochs", "4", "a.toml:1"}, {"batch-size", "5", "a.toml:2"}}, {{"epochs", "2", ""}}},
              registry_with("DdpTrainer"));
  EXPECT_EQ(r.plan.epochs, 2u);
  EXPECT_EQ(r.plan.batch_size, 5u);
  const auto wrong = [] { (void)resolve({{{"trainer", "Ddp", "a.toml:7"}}}, registry_with("DdpTrainer")); };
  EXPECT_THAT(wrong,
              ::testing::ThrowsMessage<UserError>(HasSubstr("a.toml:7: trainer Ddp: unknown trainer")));
}

TEST(Resolve, ResultsHaveAllOptions) {
  const auto r = resolved({{"batch-size", "7"}, {"lr", "0.5"}});
  const std::map<std::string, report::LabValue> options(r.options.begin(), r.options.end());
  EXPECT_EQ(options.at("ntrainer"), report::LabValue(std::int64_t{2}));
  EXPECT_EQ(options.at("batch_size"), report::LabValue(std::int64_t{7}));
  EXPECT_EQ(options.at("lr"), report::LabValue(0.5));
  EXPECT_EQ(options.at("ddp_hook"), report::LabValue(std::string("rpc_hook")));
  EXPECT_EQ(options.at("use_cuda_rpc"), report::LabValue(false));
  EXPECT_EQ(options.at("save"), report::LabValue(nullptr));
}

TEST(Resolve, ResultsHaveTheValuesOfEntries) {
  const auto r = resolved({});
  const std::map<std::string, report::LabValue> options(r.options.begin(), r.options.end());
  EXPECT_EQ(options.at("data.sample_length"), report::LabValue(std::int64_t{1024}));
  EXPECT_EQ(options.at("model.sparse"), report::LabValue(true));
  EXPECT_FALSE(std::map(r.options.begin(), r.options.end()).contains("trainer.epochs"));
}

TEST(Resolve, NetworksHaveTheirOwnLoss) {
  EXPECT_EQ(error_of({{"model", "lenet"}, {"create-criterion", "mse"}}),
            "--create-criterion mse: is for models of the configurations; lenet has its own loss");
  EXPECT_THAT(error_of({{"model", "char-lm"}, {"create-criterion", "l1"}}), HasSubstr("has its own loss"));
  EXPECT_EQ(resolved({{"model", "lenet"}, {"create-criterion", "cel"}}).plan.criterion, "");
  EXPECT_EQ(resolved({{"create-criterion", "mse"}}).plan.criterion, "mse");
}

TEST(Resolve, LocalTrainerHasNoServer) {
  EXPECT_EQ(error_of({{"trainer", "LocalTrainer"}, {"server", "AverageParameterServer"}}),
            "--server AverageParameterServer: LocalTrainer uses no servers: leave this option out");
}

class OwnFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& text) const {
    const auto path = folder_ / "own.json";
    write_file(path, text);
    return path.string();
  }
  const TemporaryFolder folder_;
};

TEST_F(OwnFiles, EntriesNameClasses) {
  const auto path = file(R"({"Mine": {"data_class": "DummyData", "configurations": {}}})");
  EXPECT_EQ(resolved({{"data", "Mine"}, {"data-config-path", path}}).plan.data_config, path);
  EXPECT_THAT(error_of({{"data", "Yours"}, {"data-config-path", path}}),
              HasSubstr("--data Yours: unknown data"));
  const auto wrong = file(R"({"Mine": {"data_class": "DumyData", "configurations": {}}})");
  EXPECT_EQ(error_of({{"data", "Mine"}, {"data-config-path", wrong}}),
            wrong + ": Mine: unknown class DumyData, did you mean DummyData?");
  EXPECT_THAT(error_of({{"data-config-path", "/no/such.json"}}), HasSubstr("/no/such.json"));
  EXPECT_THAT(error_of({{"data-config-path", file(R"({"A": {},})")}}),
              HasSubstr("is not valid JSON: line 1"));
}

TEST_F(OwnFiles, OlderTrainersHaveOptionsInTheirEntries) {
  const auto path =
      file(R"({"DdpCpuSparseRpcTrainer": {"trainer_class": "DdpSparseRpcTrainer", "configurations":
                             {"ps_name": "ps", "backend": "nccl", "use_cuda_rpc": false, "epochs": 10}}})");
  const auto r = resolved({{"trainer", "DdpCpuSparseRpcTrainer"}, {"trainer-config-path", path}});
  EXPECT_EQ(r.plan.trainer, "DdpCpuSparseRpcTrainer");  // the entry, which has more values
  EXPECT_EQ(r.plan.hook, "sparse_rpc_hook");
  EXPECT_EQ(r.plan.epochs, 10u);
  EXPECT_THAT(r.unsupported, HasSubstr("nccl"));
  const auto over = resolved({{"trainer", "DdpCpuSparseRpcTrainer"},
                              {"trainer-config-path", path},
                              {"epochs", "2"},
                              {"backend", "gloo"}});
  EXPECT_EQ(over.plan.epochs, 2u);
  EXPECT_EQ(over.unsupported, "");
}

TEST_F(OwnFiles, AServerMayAskForCudaRpc) {
  const auto path = file(R"({"Cuda": {"server_class": "AverageParameterServer", "configurations":
                             {"lock_count": 1, "use_cuda_rpc": true}}})");
  EXPECT_THAT(resolved({{"server", "Cuda"}, {"server-config-path", path}}).unsupported,
              HasSubstr("use_cuda_rpc"));
}

TEST(Resolve, ATrainerOfAProgramMayUseServersOrNot) {
  const auto with = [](const Pairs& given) {
    std::vector<GivenOption> layer = {{"trainer", "Mine", ""}};
    for (const auto& [name, text] : given) layer.push_back({name, text, ""});
    return resolve({layer}, registry_with("Mine")).plan;
  };
  EXPECT_EQ(with({}).servers, 1u);
  EXPECT_EQ(with({{"nserver", "0"}}).servers, 0u);
  EXPECT_EQ(with({{"nserver", "2"}, {"ddp-hook", "allreduce_hook"}}).servers, 2u);
}

TEST(Names, Strategies) {
  for (const auto* name :
       {"sync", "ssp:3", "single", "allreduce", "sync;500=async", "default=sync,fc*=async"})
    EXPECT_TRUE(is_strategy(name)) << name;
  for (const auto* name : {"DdpTrainer", "syncs", "", "AverageParameterServer"})
    EXPECT_FALSE(is_strategy(name)) << name;
}

}  // namespace
}  // namespace capstan::lab
