#include "capstan/lab/machine.h"

#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/cores.h"
#include "capstan/job/versions.h"

namespace capstan::lab {
namespace {

// The text after the colon of the first line that begins with `key`; empty if there is none.
std::string value_in(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

report::LabMachine this_machine() {
  const auto cpu = value_in("/proc/cpuinfo", "model name");
  const auto kibibytes = std::strtoull(value_in("/proc/meminfo", "MemTotal").c_str(), nullptr, 10);
  return {cpu.empty() ? "unknown" : cpu, usable_cores(), kibibytes * 1024};
}

report::LabOptions these_versions() {
  report::LabOptions out;
  const auto versions = nlohmann::ordered_json::parse(job::versions());
  for (const auto& [name, value] : versions.items()) {
    if (name == "cores") continue;  // of the machine
    if (value.is_number_integer())
      out.emplace_back(name, value.get<std::int64_t>());
    else
      out.emplace_back(name, value.get<std::string>());
  }
  return out;
}

std::string now_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace capstan::lab
