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
    {"ssp", "S", "async, but nobody runs more than S steps ahead of the slowest (3; or inf)", make_ssp},
    {"backup", "B", "sync without the B slowest gradients of each step (1)", make_backup},
    {"dc-asgd", "LAMBDA", "async, each gradient corrected for its delay (0.04)", make_dc_asgd},
    {"dc-asgd-a", "LAMBDA", "the same, with a correction that adapts to the gradients (0.04)",
     make_dc_asgd_adaptive},
    {"easgd", "ALPHA:T", "workers train alone, tied by a spring every T steps (0.9 ÷ workers : 10)",
     make_easgd},
    {"local-sgd", "H", "workers train alone and take their mean every H steps (10)", make_local_sgd},
    {"diloco", "H", "workers train alone; every H steps an outer Nesterov step (500)", make_diloco},
    {"decoupled-diloco", "H:K:GRACE", "diloco that waits for K workers and a while longer (500:half:1s)",
     make_decoupled_diloco},
    {"fedavg", "EPOCHS", "workers train alone on all their data, then take the mean by samples (1)",
     make_fedavg},
    {"fedbuff", "K:H:RATE", "workers train alone and never wait; K deltas make a step (10:10:1)",
     make_fedbuff},
};

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto options = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  std::vector<std::string_view> names = {"single",
                                         "allreduce"};  // which need no server, and are not made here
  for (const auto& entry : kTable) {
    names.emplace_back(entry.name);
    if (name != entry.name) continue;
    if (colon != std::string::npos && options.empty())
      throw UserError(fmt::format("strategy \"{}\" names no option behind its colon", text));
    return entry.make(options, workers);
  }
  const auto near = nearest(name, names);
  throw UserError(fmt::format("unknown strategy \"{}\"{}; known: {}", text,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(names, ", ")));
}

}  // namespace capstan::strategy
