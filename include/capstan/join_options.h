#pragma once

#include "capstan/cxx20.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace capstan {

// kAuto uses shared memory (kLocal) for a server on this host, and UCX for any other.
enum class Transport { kAuto, kLocal, kUcx };

// How to join a job.
struct JoinOptions {
  // The addresses of all servers of the job, each "host:port"; the first is the leader's.
  std::vector<std::string> servers;
  // The job's token, which must be the servers' token: 64 hexadecimal digits in `token`; if that is empty, in
  // the file `token_file`; if that is empty too, in the environment variable CAPSTAN_TOKEN.
  std::string token = {};
  std::filesystem::path token_file = {};
  // The rank that a worker asks for; without it, the leader assigns one. An observer has none.
  std::optional<std::uint32_t> rank = {};
  Transport transport = Transport::kAuto;
  // How long to try to reach servers that are still starting.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  // A server that sends nothing for this long, not even a heartbeat, is lost.
  std::chrono::milliseconds silence_timeout = std::chrono::seconds(3);
};

}  // namespace capstan
