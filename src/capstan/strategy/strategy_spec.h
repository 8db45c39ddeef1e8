#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capstan/base/parameter_groups.h"
#include "capstan/strategy/strategy.h"

namespace capstan::strategy {

// A strategy that is used from a version on.
struct Switch {
  Version from;
  std::shared_ptr<const Strategy> strategy;
};

// Tensors that have a strategy of their own.
struct Group {
  std::string glob;  // of tensor names
  std::shared_ptr<const Strategy> strategy;
};

// The strategies of one job of `workers` workers: the first, and later ones by version. Or groups of tensors
// with a strategy each: then `first` is the default, and `later` is empty. Immutable once made.
struct StrategySpec {
  std::uint32_t workers = 1;
  std::shared_ptr<const Strategy> first;
  std::vector<Switch> later;
  // Entries 1 and up; a tensor belongs to the first that matches, otherwise to the default, entry 0.
  std::vector<Group> groups;

  // "sync", "sync;500=async;900=ssp:3", "default=sync,fc*=async". Parses to the same spec.
  std::string spelling() const;
  // Whether it holds for all strategies.
  bool workers_idle_during_update() const;
  // Whether it holds for any strategy.
  bool needs_mean_square() const;
  bool compensates() const;
  // The fewest pushes per update of any group.
  std::uint32_t least_pushes_per_update() const;
  // For base/parameter_groups.h.
  std::vector<std::string> globs() const;
  // Throws UserError if a step of several phases does not work with these strategies.
  void check_phases(const ParameterGroups& groups) const;
  // Throws UserError if a row tensor has a strategy that cannot update rows.
  void check_rows(const FlatLayout& layout, const ParameterGroups& groups) const;
  // For the default, while all workers take part: the pushes of all workers between two versions, and the
  // version that is reached from `from` by so many pushes.
  std::uint64_t pushes(Version from, Version to) const;
  Version after(Version from, std::uint64_t pushes) const;
};

// Throws UserError for wrong syntax, and for what cannot be combined: only strategies without local steps may
// be switched or have groups, and not both.
StrategySpec parse_strategy_spec(const std::string& text, std::uint32_t workers);
// Joins the values of --strategy and --switch, such as "sync" and "500=async,900=ssp:3", to a spec.
std::string strategy_spec_text(const std::string& strategy, const std::string& switches);

}  // namespace capstan::strategy
