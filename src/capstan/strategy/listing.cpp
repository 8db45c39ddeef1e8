#include "capstan/strategy/listing.h"

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/strategy/strategy.h"

namespace capstan::strategy {
namespace {

std::string row(const std::string& spelling, const std::string& summary) {
  constexpr std::size_t kIndent = 28;
  return fmt::format("{:<{}}{}\n", spelling, kIndent, wrapped(summary, kIndent, kIndent));
}

}  // namespace

std::string strategies_text() {
  auto out = row("single", "one process, no server: the baseline for all others") +
             row("allreduce", "no server: workers allreduce their gradients with Gloo");
  for (const auto& entry : table())
    out += row(fmt::format("{}{}{}", entry.name, *entry.options ? ":" : "", entry.options), entry.summary);
  return out +
         "\nOptions follow the name, separated by colons; defaults are in parentheses.\n"
         "docs/strategies.md describes each strategy, its cost and when to use it.\n"
         "\nGroups of tensors, selected by name, can have their own strategy (sync to\n"
         "dc-asgd-a):\n"
         "  --strategy \"default=sync,fc*.weight=async\"\n";
}

}  // namespace capstan::strategy
