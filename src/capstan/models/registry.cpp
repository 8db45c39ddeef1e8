#include "capstan/models/registry.h"

#include <array>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/models/lenet.h"
#include "capstan/models/mlp.h"

namespace capstan::models {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Model> (*make)(const ModelOptions&);
};

// To add a network, add a line.
constexpr Entry kTable[] = {
    {"lenet", make_lenet},
    {"mlp", make_mlp},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kTable)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kTable[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> model_names() {
  return kNames;
}

std::unique_ptr<Model> make(const std::string& name, const ModelOptions& options) {
  for (const auto& entry : kTable) {
    if (entry.name != name) continue;
    at::manual_seed(options.init_seed);
    return entry.make(options);
  }
  const auto near = nearest(name, kNames);
  throw UserError(fmt::format("unknown network '{}'{}; known are {}", name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(kNames, ", ")));
}

}  // namespace capstan::models
