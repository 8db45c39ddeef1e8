#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capstan/strategy/strategy.h"

namespace capstan::strategy {

// A strategy that takes over at a version.
struct Phase {
  Version from;
  std::unique_ptr<Strategy> strategy;
};

// The strategies of one job of `workers` workers: the one it begins with, and those that take over later, by
// their versions. Immutable once made.
struct Plan {
  std::uint32_t workers = 1;
  std::unique_ptr<Strategy> first;
  std::vector<Phase> later;

  // "sync", "sync;500=async;900=ssp:3". Reads back as the same plan.
  std::string spelling() const;
  // As the strategies' own, for all of them.
  bool parks_all() const;
  bool needs_mean_square() const;
  // Pushes of all workers together that lie between two versions while all take part, and where so many more
  // of them lead from a version.
  std::uint64_t pushes(Version from, Version to) const;
  Version after(Version from, std::uint64_t pushes) const;
};

// Throws UserError for what is misspelt, and for a change that makes no sense: only strategies whose workers
// hand in gradients may take over from each other.
Plan parse_plan(const std::string& text, std::uint32_t workers);
// The plan of what a user gives as two: "sync" and "500=async,900=ssp:3".
std::string plan_text(const std::string& strategy, const std::string& switches);

}  // namespace capstan::strategy
