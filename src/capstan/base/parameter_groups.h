#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/layout.h"
#include "capstan/step_phase.h"

namespace capstan {

// * is any text, ? any character.
bool glob_matches(std::string_view glob, std::string_view name);

// The name of the entry for all tensors that no glob matches.
inline constexpr const char* kDefaultGroup = "default";

// The first difference between the phases of two workers, in one line; empty if they are equal.
std::string difference(const std::vector<StepPhase>& here, const std::vector<StepPhase>& there);

// The one table of globs that divides a model's tensors. A tensor belongs to the first glob of a list that
// matches.
struct GroupTable {
  std::vector<std::string> strategies = {};  // of --strategy without its default, which is entry 0
  std::vector<std::string> optimizers = {};  // of --optimizer without its default, which is entry 0
  std::vector<StepPhase> phases = {};        // in order; none or one: every step has one phase
};

// Tensors that are updated together: they have the same phase, strategy and optimizer. A row tensor is a
// group of its own.
struct ParameterGroup {
  std::string name;             // for files: "default", a glob, or the entries that it combines
  std::uint32_t phase = 0;      // from 0
  std::uint32_t strategy = 0;   // entry of --strategy
  std::uint32_t optimizer = 0;  // entry of --optimizer
  bool is_rows = false;         // of one row tensor: an update changes some of its rows
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// The parameter groups of one model: each is a combination of phase, strategy and optimizer that has tensors,
// or a row tensor. Groups of the last phase come first, so the updates of group 0 count steps; row tensors
// come behind other tensors of the same combination. Immutable.
class ParameterGroups {
 public:
  // One group of all tensors.
  ParameterGroups() = default;
  // Throws UserError for an entry without tensors, a tensor without a phase, and phases with the same name.
  ParameterGroups(const FlatLayout& layout, const GroupTable& table);

  std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  const ParameterGroup& operator[](std::size_t group) const { return groups_[group]; }
  auto begin() const { return groups_.begin(); }
  auto end() const { return groups_.end(); }
  std::vector<std::string> names() const;

  std::uint32_t phases() const { return phases_; }
  // The phase of an incarnation's push: its first push is of phase 0, and every step has all phases.
  std::uint32_t phase_of(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>((sequence - 1) % phases_);
  }
  // Whether this push is the last of its step; true for 0, before the first.
  bool ends_step(std::uint64_t sequence) const { return sequence % phases_ == 0; }

  // The group of each tensor of the layout.
  const std::vector<std::uint32_t>& of_tensors() const { return of_tensors_; }

 private:
  std::vector<ParameterGroup> groups_ = {{kDefaultGroup}};
  std::uint32_t phases_ = 1;
  std::vector<std::uint32_t> of_tensors_;
};

// For each of `groups` groups, its elements within a shard, relative to the shard's begin: sorted ranges,
// adjacent ones merged. Together they cover the shard: the gap behind a tensor belongs to the tensor's group.
std::vector<std::vector<Range>> group_ranges(const FlatLayout& layout,
                                             std::span<const std::uint32_t> group_of_tensor,
                                             std::uint32_t groups, Range shard);

// For each phase, the part of a shard that a push of this phase carries, relative to the shard's begin: the
// smallest range that has all elements of the phase's groups; empty if the shard has none of them.
std::vector<Range> push_ranges(const FlatLayout& layout, const ParameterGroups& groups, Range shard);

}  // namespace capstan
