#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

constexpr Entry kTable[] = {
    {"sync", "", "one update of the gradients of all workers; same seed, same bits", make_sync},
    {"async", "damped", "every gradient is one update, on arrival; damped: less of it where it is stale",
     make_async},
    {"batch", "K", "one update of the first K gradients that wait (default: all workers)", make_batch},
};

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto options = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  std::vector<std::string_view> names;
  for (const auto& entry : kTable) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    if (colon != std::string::npos && options.empty())
      throw UserError(fmt::format("strategy \"{}\" names no option behind its colon", text));
    return entry.make(options, workers);
  }
  const auto near = nearest(name, names);
  throw UserError(fmt::format("unknown strategy \"{}\"{}; known: single, {}", text,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(names, ", ")));
}

}  // namespace capstan::strategy
