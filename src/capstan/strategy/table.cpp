#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/strategy/strategies.h"
#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

constexpr Entry kTable[] = {
    {"sync", "", "the gradients of all workers make one update; bitwise reproducible", make_sync},
    {"async", "damped", "every gradient is one update, on arrival; damped: scaled by 1 ÷ (1 + staleness)",
     make_async},
    {"batch", "K", "the first K gradients to arrive make one update (default: all workers)", make_batch},
    {"ssp", "S", "async, but no worker is more than S steps ahead of the slowest (3; or inf)", make_ssp},
    {"backup", "B", "sync without the B slowest gradients of each step (1)", make_backup},
    {"dc-asgd", "LAMBDA", "async, each gradient corrected for its delay (0.04)", make_dc_asgd},
    {"dc-asgd-a", "LAMBDA", "the same, with a correction that adapts to the gradients (0.04)",
     make_dc_asgd_adaptive},
    {"easgd", "ALPHA:T", "local steps; elastic averaging every T steps (0.9 ÷ workers : 10)", make_easgd},
    {"local-sgd", "H", "local steps; workers average their weights every H steps (10)", make_local_sgd},
    {"diloco", "H", "local steps; servers make an outer Nesterov step every H steps (500)", make_diloco},
    {"decoupled-diloco", "H:K:GRACE", "diloco that waits for K workers, then for GRACE (500:half:1s)",
     make_decoupled_diloco},
    {"fedavg", "EPOCHS", "local epochs; then the mean of the weights, weighted by samples (1)", make_fedavg},
    {"fedbuff", "K:H:RATE", "H local steps, no waiting; K deltas make an outer step (10:10:1)", make_fedbuff},
};

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto options = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  // Strategies without a server are not in the table.
  std::vector<std::string_view> names = {"single", "allreduce"};
  for (const auto& entry : kTable) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    if (colon != std::string::npos && options.empty())
      throw UserError(fmt::format("strategy \"{}\": an option is missing after the colon", text));
    return entry.make(options, workers);
  }
  const auto near = nearest(name, names);
  throw UserError(fmt::format("unknown strategy \"{}\"{}; known: {}", text,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(names, ", ")));
}

}  // namespace capstan::strategy
