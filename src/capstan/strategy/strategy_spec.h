#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/strategy/strategy.h"

namespace capstan::strategy {

// A strategy that takes over at a version.
struct Phase {
  Version from;
  std::unique_ptr<Strategy> strategy;
};

// Tensors that have a strategy of their own.
struct Group {
  std::string glob;  // over their names: * is any text, ? any character
  std::unique_ptr<Strategy> strategy;
};

// The strategies of one job of `workers` workers: the one it begins with, and those that take over later, by
// their versions. Or groups of tensors with a strategy each: then `first` is that of group 0, the default,
// and there is none later. Immutable once made.
struct StrategySpec {
  std::uint32_t workers = 1;
  std::unique_ptr<Strategy> first;
  std::vector<Phase> later;
  std::vector<Group>
      groups;  // from group 1 on; a tensor belongs to the first that matches, or to the default

  // "sync", "sync;500=async;900=ssp:3", "default=sync,fc*=async". Reads back as the same spec.
  std::string spelling() const;
  // As the strategies' own, for all of them.
  bool workers_idle_during_update() const;
  bool needs_mean_square() const;
  // The least pushes for an update of any group.
  std::uint32_t least_pushes_per_update() const;
  // "default" and the globs, by group.
  std::vector<std::string> group_names() const;
  // The group of each tensor. Throws UserError where a group, or the default, is left without any.
  std::vector<std::uint32_t> groups_of(const FlatLayout& layout) const;
  // Of group 0: pushes of all workers together that lie between two versions while all take part, and where
  // so many more of them lead from a version.
  std::uint64_t pushes(Version from, Version to) const;
  Version after(Version from, std::uint64_t pushes) const;
};

// Throws UserError for what is misspelt, and for what makes no sense: only strategies whose workers hand in
// gradients may take over from each other, or be those of groups, and only one of the two.
StrategySpec parse_strategy_spec(const std::string& text, std::uint32_t workers);
// The spec of what a user gives as two: "sync" and "500=async,900=ssp:3".
std::string strategy_spec_text(const std::string& strategy, const std::string& switches);

}  // namespace capstan::strategy
