#include "capstan/checkpoint/aliases.h"

#include <fstream>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/json.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

constexpr const char* kFile = "aliases.json";

}  // namespace

void write_aliases(const std::filesystem::path& run, const Aliases& aliases) {
  if (aliases.empty()) return;
  auto json = Json::object();
  for (const auto& [alias, name] : aliases) json[alias] = name;
  const auto text = json.dump(2) + "\n";
  AtomicFile file(run / kFile);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

Aliases read_aliases(const std::filesystem::path& run) {
  std::ifstream in;
  if (!run.empty()) in.open(run / kFile);
  if (!in.is_open()) return {};
  try {
    return nlohmann::json::parse(in).get<Aliases>();
  } catch (const nlohmann::json::exception&) {
    throw UserError(
        fmt::format("{} is damaged: it should be an object of texts, from other names of tensors to "
                    "their names",
                    (run / kFile).string()));
  }
}

}  // namespace capstan::checkpoint
