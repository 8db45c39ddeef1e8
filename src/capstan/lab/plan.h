#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/config/setting.h"

namespace capstan::lab {

// One configuration of trainers and servers, as every process of it needs it. A value.
struct Plan {
  std::uint32_t trainers = 2, servers = 1;
  std::string trainer = "DdpTrainer", server = "AverageParameterServer";  // server: empty if there is none
  std::string data = "DummyData", model = "DummyModelSparse";  // data: empty if the task has its own
  std::string hook = "rpc_hook", criterion = "cel", backend = "gloo";
  std::uint64_t epochs = 1, batch_size = 32, seed = 1;
  std::string optimizer = "sgd";  // of strategies' servers (optimizer/spec.h)
  double lr = 1e-4;
  double rpc_timeout = 120;   // seconds in which servers must answer a trainer that joins
  std::uint32_t threads = 1;  // per process
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  // of the trainers' rendezvous; 0: any
  // Configuration files; absolute.
  std::filesystem::path data_config, model_config, trainer_config, server_config;
  std::filesystem::path data_dir;  // of datasets; empty: the usual places
  std::filesystem::path save;      // folder for weights and records of each run; empty: none
  std::uint64_t max_steps = 0;     // of each trainer in an epoch; 0: all
  bool timers = true;              // false: nothing is measured but the whole

  Json to_json() const;
  // Of to_json(); throws UserError.
  static Plan parse(const std::string& text);
};

inline constexpr std::uint64_t kMostProcesses = 128;  // of trainers, and of servers

// All members of a plan by the names of their flags and keys, bound to `plan`, which must outlive them.
std::vector<config::Setting> settings(Plan& plan);

}  // namespace capstan::lab
