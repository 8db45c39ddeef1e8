#include "capstan/strategy/strategy_spec.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

constexpr auto kEver = std::numeric_limits<std::uint64_t>::max();

Switch parse_switch(const std::string& text, std::uint32_t workers) {
  const auto equals = text.find('=');
  std::uint64_t from = 0;
  const auto* const end = text.data() + std::min(equals, text.size());
  const auto [at, error] = std::from_chars(text.data(), end, from);
  if (equals == std::string::npos || error != std::errc() || at != end || from == 0)
    throw UserError(fmt::format("--switch {}: must be STEP=STRATEGY, such as 500=async", text));
  return {{from}, parse(text.substr(equals + 1), workers)};
}

Group parse_group(const std::string& text, std::uint32_t workers) {
  const auto equals = text.find('=');
  if (equals == std::string::npos)
    throw UserError(
        fmt::format("--strategy: group \"{}\" must be GLOB=STRATEGY, such as fc*.weight=async", text));
  Group group{text.substr(0, equals), nullptr};
  const auto spelling = text.substr(equals + 1);
  if (group.glob.empty())
    throw UserError(
        fmt::format("--strategy: group \"{}\" names no tensors: give a glob, such as fc*.weight", text));
  const auto reject_whole = [&] {
    throw UserError(
        fmt::format("--strategy: group {}: {} is for a whole model; groups may have sync, async, batch, ssp, "
                    "backup, dc-asgd and dc-asgd-a",
                    group.glob, spelling));
  };
  if (spelling == "single" || spelling == "allreduce") reject_whole();
  try {
    group.strategy = parse(spelling, workers);
  } catch (const UserError& error) {
    throw UserError(fmt::format("--strategy: group {}: {}", group.glob, error.what()));
  }
  if (group.strategy->local_steps().uses_local_steps()) reject_whole();
  return group;
}

StrategySpec parse_groups(const std::string& text, std::uint32_t workers) {
  StrategySpec spec{workers, nullptr, {}, {}};
  std::vector<std::string> globs;
  for (const auto& part : split(text, ',')) {
    auto group = parse_group(part, workers);
    if (std::ranges::find(globs, group.glob) != globs.end())
      throw UserError(fmt::format("--strategy: group {} is given twice", group.glob));
    globs.push_back(group.glob);
    if (group.glob == kDefaultGroup) {
      spec.first = std::move(group.strategy);
    } else {
      spec.groups.push_back(std::move(group));
    }
  }
  if (!spec.first)
    throw UserError(fmt::format(
        "--strategy {}: groups need a default for all other tensors, such as default=sync", text));
  return spec;
}

// Calls visit(first version, end version, pushes per update) for each strategy in turn.
template <class Visit>
void for_each_strategy(const StrategySpec& spec, Visit visit) {
  const Strategy* strategy = spec.first.get();
  std::uint64_t begin = 0;
  for (const auto& next : spec.later) {
    visit(begin, next.from.value, strategy->pushes_per_update(spec.workers));
    begin = next.from.value;
    strategy = next.strategy.get();
  }
  visit(begin, kEver, strategy->pushes_per_update(spec.workers));
}

}  // namespace

std::string StrategySpec::spelling() const {
  auto text = first->spelling();
  if (!groups.empty()) text = fmt::format("{}={}", kDefaultGroup, text);
  for (const auto& group : groups) text += fmt::format(",{}={}", group.glob, group.strategy->spelling());
  for (const auto& next : later) text += fmt::format(";{}={}", next.from.value, next.strategy->spelling());
  return text;
}

bool StrategySpec::workers_idle_during_update() const {
  return first->workers_idle_during_update(workers) &&
         std::ranges::all_of(
             later, [&](const Switch& s) { return s.strategy->workers_idle_during_update(workers); }) &&
         std::ranges::all_of(groups,
                             [&](const Group& g) { return g.strategy->workers_idle_during_update(workers); });
}

bool StrategySpec::needs_mean_square() const {
  return first->needs_mean_square() ||
         std::ranges::any_of(later, [&](const Switch& s) { return s.strategy->needs_mean_square(); }) ||
         std::ranges::any_of(groups, [&](const Group& g) { return g.strategy->needs_mean_square(); });
}

bool StrategySpec::compensates() const {
  return first->compensates() ||
         std::ranges::any_of(later, [&](const Switch& s) { return s.strategy->compensates(); }) ||
         std::ranges::any_of(groups, [&](const Group& g) { return g.strategy->compensates(); });
}

std::uint32_t StrategySpec::least_pushes_per_update() const {
  auto least = first->pushes_per_update(workers);
  for (const auto& group : groups) least = std::min(least, group.strategy->pushes_per_update(workers));
  return least;
}

std::vector<std::string> StrategySpec::globs() const {
  std::vector<std::string> globs;
  for (const auto& group : groups) globs.push_back(group.glob);
  return globs;
}

// Such a strategy compares a push's step with the updates of its group: these agree only if all groups make
// one update per step.
void StrategySpec::check_phases(const ParameterGroups& table) const {
  if (table.phases() == 1) return;
  std::vector<const Strategy*> all = {first.get()};
  for (const auto& s : later) all.push_back(s.strategy.get());
  for (const auto& group : groups) all.push_back(group.strategy.get());
  const auto tagged = std::ranges::find_if(all, &Strategy::drops_by_step);
  if (tagged == all.end() || std::ranges::all_of(all, &Strategy::drops_by_step)) return;
  throw UserError(fmt::format("--strategy {}: a step of {} phases needs {} for all tensors, or for none",
                              spelling(), table.phases(), (*tagged)->spelling()));
}

void StrategySpec::check_rows(const FlatLayout& layout, const ParameterGroups& table) const {
  for (std::size_t t = 0; t < table.of_tensors().size(); ++t) {
    const auto& group = table[table.of_tensors()[t]];
    if (!group.is_rows) continue;
    std::vector<const Strategy*> all = {group.strategy == 0 ? first.get()
                                                            : groups[group.strategy - 1].strategy.get()};
    if (group.strategy == 0)
      for (const auto& s : later) all.push_back(s.strategy.get());
    const auto wrong = std::ranges::find_if(all, &Strategy::compensates);
    if (wrong == all.end()) continue;
    throw UserError(
        fmt::format("--strategy: {0} has sparse gradients, which {1} cannot use; give it sync, async, batch, "
                    "ssp or backup, "
                    "as in default={1},{0}=async",
                    layout.tensors()[t].name, (*wrong)->spelling()));
  }
}

std::uint64_t StrategySpec::pushes(Version from, Version to) const {
  std::uint64_t sum = 0;
  for_each_strategy(*this, [&](std::uint64_t begin, std::uint64_t end, std::uint64_t each) {
    const auto first_version = std::max(begin, from.value), last = std::min(end, to.value);
    if (last > first_version) sum += (last - first_version) * each;
  });
  return sum;
}

Version StrategySpec::after(Version from, std::uint64_t pushes) const {
  auto version = from.value;
  for_each_strategy(*this, [&](std::uint64_t, std::uint64_t end, std::uint64_t each) {
    if (version >= end || pushes == 0) return;
    const auto updates = std::min(end - version, (pushes + each - 1) / each);
    version += updates;
    pushes -= std::min(pushes, updates * each);
  });
  return {version};
}

StrategySpec parse_strategy_spec(const std::string& text, std::uint32_t workers) {
  const auto parts = split(text, ';');
  if (parts[0].find_first_of("=,") != std::string::npos) {
    if (parts.size() > 1)
      throw UserError(fmt::format("--switch {}: cannot be combined with groups of tensors",
                                  text.substr(parts[0].size() + 1)));
    return parse_groups(text, workers);
  }
  StrategySpec spec{workers, parse(parts[0], workers), {}, {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    spec.later.push_back(parse_switch(parts[i], workers));
    const auto& next = spec.later.back();
    for (const auto* strategy : {spec.first.get(), next.strategy.get()}) {
      if (strategy->local_steps().uses_local_steps())
        throw UserError(fmt::format("--switch {}: {} uses local steps and cannot be combined with --switch",
                                    parts[i], strategy->spelling()));
    }
    if (i > 1 && next.from <= spec.later[i - 2].from)
      throw UserError(fmt::format("--switch {}: must be at a later step than the switch before it, {}",
                                  parts[i], spec.later[i - 2].from.value));
  }
  return spec;
}

std::string strategy_spec_text(const std::string& strategy, const std::string& switches) {
  auto text = strategy;
  if (!switches.empty()) {
    for (const auto& part : split(switches, ',')) text += ";" + part;
  }
  return text;
}

}  // namespace capstan::strategy
