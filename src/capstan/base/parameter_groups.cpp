#include "capstan/base/parameter_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan {
namespace {

constexpr auto kNone = std::string_view::npos;

// The first glob that matches each tensor; globs.size() for none.
std::vector<std::size_t> first_matches(const FlatLayout& layout, const std::vector<std::string>& globs) {
  std::vector<std::size_t> first;
  for (const auto& tensor : layout.tensors()) {
    const auto found =
        std::ranges::find_if(globs, [&](const auto& glob) { return glob_matches(glob, tensor.name); });
    first.push_back(static_cast<std::size_t>(found - globs.begin()));
  }
  return first;
}

bool matches_any(const std::string& glob, const FlatLayout& layout) {
  return std::ranges::any_of(layout.tensors(), [&](const auto& t) { return glob_matches(glob, t.name); });
}

// The entry of --strategy or --optimizer for each tensor: 0 is the default.
std::vector<std::uint32_t> entries_of(const FlatLayout& layout, const std::vector<std::string>& globs,
                                      std::string_view flag) {
  std::vector<std::uint32_t> entries;
  for (const auto match : first_matches(layout, globs))
    entries.push_back(match == globs.size() ? 0 : static_cast<std::uint32_t>(match + 1));
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (std::ranges::find(entries, i + 1) != entries.end()) continue;
    throw UserError(fmt::format("{}: group {} {}", flag, globs[i],
                                matches_any(globs[i], layout)
                                    ? "is left without tensors: groups before it take all it matches"
                                    : "matches no tensor of this model"));
  }
  if (!globs.empty() && std::ranges::find(entries, 0u) == entries.end())
    throw UserError(fmt::format(
        "{}: the default is left without tensors: the groups take all; leave one group out", flag));
  return entries;
}

constexpr std::size_t kListed = 200;  // bytes of a list of globs in a message

std::string text(const StepPhase& phase) {
  return shortened(fmt::format("{} ({})", phase.name, fmt::join(phase.globs, ", ")), kListed);
}

std::string text(const std::vector<StepPhase>& phases) {
  std::string out;
  for (const auto& phase : phases) out += (out.empty() ? "" : ", ") + text(phase);
  return shortened(out, kListed);
}

void check_names(const std::vector<StepPhase>& phases) {
  std::set<std::string_view> names;
  for (const auto& phase : phases) {
    if (phase.name.empty()) throw UserError("a phase of a step has no name: give each its own");
    if (!names.insert(phase.name).second)
      throw UserError(fmt::format("two phases of a step are named {}: give each its own name", phase.name));
  }
}

std::vector<std::uint32_t> phases_of(const FlatLayout& layout, const std::vector<StepPhase>& phases) {
  std::vector<std::uint32_t> of(layout.tensors().size(), 0);
  if (phases.size() <= 1) return of;
  check_names(phases);
  std::vector<std::string> globs;
  std::vector<std::uint32_t> owner;  // of each glob
  for (std::uint32_t p = 0; p < phases.size(); ++p) {
    for (const auto& glob : phases[p].globs) {
      globs.push_back(glob);
      owner.push_back(p);
    }
  }
  const auto matches = first_matches(layout, globs);
  for (std::size_t t = 0; t < of.size(); ++t) {
    if (matches[t] == globs.size())
      throw UserError(fmt::format("tensor {} is in no phase of a step: the phases are {}",
                                  layout.tensors()[t].name, text(phases)));
    of[t] = owner[matches[t]];
  }
  for (std::uint32_t p = 0; p < phases.size(); ++p) {
    if (std::ranges::find(of, p) == of.end())
      throw UserError(
          fmt::format("phase {} of a step is left without tensors of this model: the phases are {}",
                      phases[p].name, text(phases)));
  }
  return of;
}

// `row_tensor`: the name of a row tensor; empty for other tensors.
std::string name_of(const ParameterGroup& group, const GroupTable& table, const std::string& row_tensor) {
  const auto entry = [](const std::vector<std::string>& globs, std::uint32_t index) {
    return index == 0 ? kDefaultGroup : globs[index - 1];
  };
  if (!group.is_rows && table.phases.size() <= 1 && table.optimizers.empty())
    return entry(table.strategies, group.strategy);
  std::vector<std::string> parts;
  if (table.phases.size() > 1) parts.push_back("phase " + table.phases[group.phase].name);
  if (!table.strategies.empty()) parts.push_back("strategy " + entry(table.strategies, group.strategy));
  if (!table.optimizers.empty()) parts.push_back("optimizer " + entry(table.optimizers, group.optimizer));
  if (group.is_rows) parts.push_back("rows of " + row_tensor);
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

bool glob_matches(std::string_view glob, std::string_view name) {
  // The position of the last star in the glob, and of the last attempt to match the text after it.
  auto star = kNone;
  std::size_t g = 0, n = 0, tried = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      tried = n;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g, ++n;
    } else if (star != kNone) {
      g = star + 1;
      n = ++tried;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == kNone;
}

std::string difference(const std::vector<StepPhase>& here, const std::vector<StepPhase>& there) {
  if (here.size() != there.size())
    return fmt::format("{} phases of a step here and {} there", here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (here[i] != there[i])
      return fmt::format("phase {} of a step is {} here and {} there", i, text(here[i]), text(there[i]));
  }
  return {};
}

ParameterGroups::ParameterGroups(const FlatLayout& layout, const GroupTable& table)
    : groups_(), phases_(std::max<std::uint32_t>(1, static_cast<std::uint32_t>(table.phases.size()))) {
  const auto strategies = entries_of(layout, table.strategies, "--strategy");
  const auto optimizers = entries_of(layout, table.optimizers, "--optimizer");
  const auto phases = phases_of(layout, table.phases);
  // The last phase first, then the others in order; a row tensor counts from 1, other tensors are 0.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::size_t>;
  const auto key = [&](std::size_t t) {
    return Key{(phases[t] + 1) % phases_, strategies[t], optimizers[t],
               layout.tensors()[t].sparse ? t + 1 : 0};
  };
  std::map<Key, std::uint32_t> indices;
  for (std::size_t t = 0; t < phases.size(); ++t) indices.emplace(key(t), 0);
  for (auto& [combination, index] : indices) {
    index = size();
    const auto& [after_last, strategy, optimizer, row_tensor] = combination;
    ParameterGroup group{{}, (after_last + phases_ - 1) % phases_, strategy, optimizer, row_tensor > 0};
    group.name = name_of(group, table, row_tensor > 0 ? layout.tensors()[row_tensor - 1].name : "");
    groups_.push_back(std::move(group));
  }
  for (std::size_t t = 0; t < phases.size(); ++t) of_tensors_.push_back(indices.at(key(t)));
}

std::vector<std::string> ParameterGroups::names() const {
  std::vector<std::string> names;
  for (const auto& group : groups_) names.push_back(group.name);
  return names;
}

std::vector<std::vector<Range>> group_ranges(const FlatLayout& layout,
                                             std::span<const std::uint32_t> group_of_tensor,
                                             std::uint32_t groups, Range shard) {
  CAPSTAN_CHECK(group_of_tensor.size() == layout.tensors().size(), "every tensor has a group");
  std::vector<std::vector<Range>> of(groups);
  const auto add = [&](std::uint32_t group, Range range) {
    range = {std::max(range.begin, shard.begin), std::min(range.end, shard.end)};
    if (range.begin >= range.end) return;
    range = {range.begin - shard.begin, range.end - shard.begin};
    auto& ranges = of.at(group);
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  };
  for (std::size_t t = 0; t < group_of_tensor.size(); ++t) {
    const auto end = t + 1 < group_of_tensor.size() ? layout.offset(t + 1) : layout.size();
    add(group_of_tensor[t], {layout.offset(t), end});
  }
  return of;
}

std::vector<Range> push_ranges(const FlatLayout& layout, const ParameterGroups& groups, Range shard) {
  std::vector<Range> of_phases(groups.phases());
  const auto of_groups = group_ranges(layout, groups.of_tensors(), groups.size(), shard);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (of_groups[g].empty()) continue;
    const Range span{of_groups[g].front().begin, of_groups[g].back().end};
    auto& range = of_phases[groups[g].phase];
    range =
        range.size() == 0 ? span : Range{std::min(range.begin, span.begin), std::max(range.end, span.end)};
  }
  return of_phases;
}

}  // namespace capstan
