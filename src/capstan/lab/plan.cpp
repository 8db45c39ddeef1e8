#include "capstan/lab/plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using config::WholeRange;

Json json_of(const config::Value& value) {
  return std::visit(
      []<class P>(const P& place) -> Json {
        if constexpr (std::is_same_v<P, std::filesystem::path*>)
          return place->string();
        else if constexpr (std::is_constructible_v<Json, std::remove_pointer_t<P>>)
          return *place;
        else
          return {};
      },
      value);
}

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::vector<config::Setting> settings(Plan& plan) {
  constexpr auto kProcesses = "Processes", kWork = "Work", kTraining = "Training", kFiles = "Files";
  constexpr std::uint64_t kMany = 1u << 30;
  return {
      {.name = "ntrainer",
       .also = "--trainers",
       .value = &plan.trainers,
       .limits = WholeRange{0, kMostProcesses},
       .help = "Trainers",
       .group = kProcesses},
      {.name = "nserver",
       .also = "--servers",
       .value = &plan.servers,
       .limits = WholeRange{0, kMostProcesses},
       .help = "Servers; 0 for the hooks allreduce_hook and hybrid_hook (default: 1 if the trainer uses one)",
       .group = kProcesses,
       .shows_default = false},
      {.name = "trainer",
       .value = &plan.trainer,
       .help = "DdpTrainer, or LocalTrainer, which sends nothing; or a strategy of capstan train: sync, "
               "async, ssp:3, diloco:10, allreduce, single",
       .group = kProcesses,
       .hint = "NAME"},
      {.name = "server",
       .value = &plan.server,
       .help = "AverageParameterServer or AverageBatchParameterServer; a strategy has its own",
       .group = kProcesses,
       .hint = "NAME",
       .shows_default = false},
      {.name = "ddp-hook",
       .value = &plan.hook,
       .help = "How DdpTrainer averages gradients: rpc_hook (by servers), allreduce_hook (Gloo), "
               "sparse_rpc_hook (sparse ones by servers) or hybrid_hook (Gloo, sparse ones one by one)",
       .group = kProcesses,
       .hint = "NAME",
       .shows_default = false},
      {.name = "backend",
       .value = &plan.backend,
       .limits = config::Words{"gloo", "nccl", "multi"},
       .help = "Of allreduce: gloo; nccl and multi need CUDA devices",
       .group = kProcesses,
       .hint = "NAME"},
      {.name = "threads",
       .value = &plan.threads,
       .limits = WholeRange{1, 1024},
       .help = "Threads of each process",
       .group = kProcesses},
      {.name = "data",
       .value = &plan.data,
       .help = "An entry of the data configurations (DummyData, RandomVectors), or a dataset of capstan data",
       .group = kWork,
       .hint = "NAME"},
      {.name = "model",
       .value = &plan.model,
       .help = "An entry of the model configurations (DummyModelSparse, DummyModel, LinearModel), a network "
               "(capstan models), or a task: char-lm, gan",
       .group = kWork,
       .hint = "NAME"},
      {.name = "create-criterion",
       .also = "--criterion",
       .value = &plan.criterion,
       .help = "Loss: cel (cross-entropy), l1 or mse",
       .group = kWork,
       .hint = "NAME"},
      {.name = "epochs",
       .value = &plan.epochs,
       .limits = WholeRange{1, kMany},
       .help = "Passes over the data in a run",
       .group = kTraining},
      {.name = "batch-size",
       .value = &plan.batch_size,
       .limits = WholeRange{1, kMany},
       .help = "Samples in a trainer's batch",
       .group = kTraining},
      {.name = "max-steps",
       .value = &plan.max_steps,
       .limits = WholeRange{0, kMany},
       .help = "Steps of a trainer in an epoch, at most (0: no limit)",
       .group = kTraining},
      {.name = "lr",
       .value = &plan.lr,
       .limits = config::NumberRange{0, 1e6},
       .help = "Learning rate",
       .group = kTraining},
      {.name = "optimizer",
       .value = &plan.optimizer,
       .help = "Of a strategy's servers, such as sgd:momentum=0.9 or adagrad; DdpTrainer has SGD",
       .group = kTraining,
       .hint = "NAME"},
      {.name = "seed",
       .also = "--torch-seed",
       .value = &plan.seed,
       .help = "Of data and initial weights",
       .group = kTraining},
      {.name = "rpc-timeout",
       .value = &plan.rpc_timeout,
       .limits = config::NumberRange{0.1, 1e6},
       .help = "Seconds in which servers must answer a trainer that joins; no limit of a run",
       .group = kTraining},
      {.name = "master-addr",
       .value = &plan.master_addr,
       .help = "Where trainers that use allreduce meet",
       .group = kProcesses,
       .hint = "HOST"},
      {.name = "master-port", .value = &plan.master_port, .help = "Its port (0: any)", .group = kProcesses},
      {.name = "data-config-path",
       .value = &plan.data_config,
       .help = "Configurations of data, JSON (default: configurations/data_configurations.json)",
       .group = kFiles,
       .hint = "FILE"},
      {.name = "model-config-path",
       .value = &plan.model_config,
       .help = "Of models (model_configurations.json)",
       .group = kFiles,
       .hint = "FILE"},
      {.name = "trainer-config-path",
       .value = &plan.trainer_config,
       .help = "Of trainers (trainer_configurations.json)",
       .group = kFiles,
       .hint = "FILE"},
      {.name = "server-config-path",
       .value = &plan.server_config,
       .help = "Of servers (parameter_server_configurations.json)",
       .group = kFiles,
       .hint = "FILE"},
      {.name = "data-dir",
       .value = &plan.data_dir,
       .help = "Folder of datasets (default: data)",
       .group = kFiles,
       .hint = "DIR"},
      {.name = "save",
       .value = &plan.save,
       .help = "Write into this folder: the result as lab.json, logs of all processes, and of each run the "
               "trainers' weights and a strategy's updates",
       .group = kFiles,
       .hint = "DIR"},
      {.name = "timers",
       .value = config::Value(&plan.timers),
       .help = "Measure the parts of a step; --timers=false: only the whole",
       .group = kTraining},
  };
}

Json Plan::to_json() const {
  auto copy = *this;
  auto out = Json::object();
  for (const auto& setting : settings(copy)) out[setting.name] = json_of(setting.value);
  return out;
}

Plan Plan::parse(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw UserError("the plan is not a JSON object");
  Plan plan;
  const auto all = settings(plan);
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(all, key, &config::Setting::name) == all.end())
      throw UserError(fmt::format("the plan has an unknown member {}", key));
  for (const auto& setting : all) {
    const auto member = json.find(setting.name);
    if (member == json.end()) throw UserError(fmt::format("the plan has no member {}", setting.name));
    if (const auto wrong = config::assign(setting, text_of(*member)); !wrong.empty())
      throw UserError(fmt::format("the plan's {} {}, not {}", setting.name, wrong, member->dump()));
  }
  return plan;
}

}  // namespace capstan::lab
