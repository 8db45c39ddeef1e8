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
  list("single", "one process, no server: what all others are compared with");
  list("allreduce", "no server in the step: gradients are added up among the workers, by Gloo");
  for (const auto& entry : strategy::table()) {
    list(fmt::format("{}{}{}", entry.name, *entry.options ? ":" : "", entry.options), entry.summary);
  }
  fmt::print(
      "\nOptions follow the name after colons; what is left out takes the default in\n"
      "brackets. docs/strategies.md says what each does, costs and is good for.\n"
      "\nGroups of tensors, by name, may each have one of sync to dc-asgd-a:\n"
      "  --strategy \"default=sync,fc*.weight=async\"\n");
  return true;
}

}  // namespace capstan::cli
