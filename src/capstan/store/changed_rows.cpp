#include "capstan/store/changed_rows.h"

#include <algorithm>
#include <iterator>

#include "capstan/base/check.h"

namespace capstan::store {

std::vector<std::uint32_t> merged_rows(std::span<const optimizer::RowContribution> contributions) {
  std::vector<std::uint32_t> all, before;
  for (const auto& c : contributions) {
    if (all.empty()) {
      all.assign(c.rows.begin(), c.rows.end());
      continue;
    }
    before.clear();
    std::swap(all, before);
    all.reserve(before.size() + c.rows.size());
    std::ranges::set_union(before, c.rows, std::back_inserter(all));
  }
  return all;
}

void ChangedRows::add(std::span<const std::uint32_t> rows) {
  ++updates_;
  for (const auto row : rows) {
    CAPSTAN_CHECK(row >= first_ && row - first_ < versions_.size(), "the tensor has this row");
    versions_[row - first_] = updates_;
  }
  newest_.emplace_back(rows.begin(), rows.end());
  kept_ += rows.size();
  while (kept_ > versions_.size() || newest_.size() > versions_.size() + 1) {
    kept_ -= newest_.front().size();
    newest_.pop_front();
  }
}

std::vector<std::uint32_t> ChangedRows::since(std::uint64_t updates) const {
  CAPSTAN_CHECK(updates <= updates_, "these updates were made");
  std::vector<std::uint32_t> rows;
  const auto missed = updates_ - updates;
  if (missed > newest_.size()) {
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      if (versions_[i] > updates) rows.push_back(first_ + static_cast<std::uint32_t>(i));
    }
    return rows;
  }
  // A row that changed several times counts at its last update.
  for (auto update = updates + 1; update <= updates_; ++update) {
    for (const auto row : newest_[newest_.size() - (updates_ - update) - 1])
      if (versions_[row - first_] == update) rows.push_back(row);
  }
  if (missed > 1) std::ranges::sort(rows);
  return rows;
}

}  // namespace capstan::store
