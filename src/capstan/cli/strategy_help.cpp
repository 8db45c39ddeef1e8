#include "capstan/cli/strategy_help.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/cli/output.h"
#include "capstan/strategy/strategy.h"

namespace capstan::cli {

namespace {

void list(const std::string& spelling, const std::string& summary) {
  constexpr std::size_t kIndent = 28;
  fmt::print("{:<{}}{}\n", spelling, kIndent, wrapped(summary, kIndent, kIndent));
}

}  // namespace

bool asks_for_strategies(const Arguments& arguments) {
  const auto flag = std::ranges::find(arguments, "--strategy");
  const bool asked = std::ranges::find(arguments, "--strategy=help") != arguments.end() ||
                     (flag != arguments.end() && flag + 1 != arguments.end() && *(flag + 1) == "help");
  if (!asked) return false;
  list("single", "one process, no server: the baseline for all others");
  list("allreduce", "no server: workers add up their gradients with Gloo");
  for (const auto& entry : strategy::table()) {
    list(fmt::format("{}{}{}", entry.name, *entry.options ? ":" : "", entry.options), entry.summary);
  }
  fmt::print(
      "\nOptions follow the name, separated by colons; defaults are in brackets.\n"
      "docs/strategies.md describes what each strategy does, costs and is good for.\n"
      "\nGroups of tensors, by name, may each have a strategy from sync to dc-asgd-a:\n"
      "  --strategy \"default=sync,fc*.weight=async\"\n");
  return true;
}

}  // namespace capstan::cli
