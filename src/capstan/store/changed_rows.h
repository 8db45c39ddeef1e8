#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "capstan/optimizer/optimizer.h"

namespace capstan::store {

// The rows that any contribution has: sorted, each once.
std::vector<std::uint32_t> merged_rows(std::span<const optimizer::RowContribution> contributions);

// Which rows of a row tensor the updates of this process have changed, so that a worker gets only those that
// changed since it was last given the weights. Not thread-safe.
class ChangedRows {
 public:
  // The tensor's rows [first, end).
  ChangedRows(std::uint32_t first, std::uint32_t end) : first_(first), versions_(end - first) {}

  // An update has changed these rows, which are sorted.
  void add(std::span<const std::uint32_t> rows);
  // The number of updates so far.
  std::uint64_t updates() const { return updates_; }
  // The rows that were changed after the first `updates` updates: sorted, each once. Takes time in proportion
  // to the rows of these updates or, if they have more rows than the tensor, to the rows of the tensor.
  std::vector<std::uint32_t> since(std::uint64_t updates) const;

 private:
  const std::uint32_t first_;
  std::vector<std::uint64_t> versions_;  // of each row: the last update that changed it; 0 for none
  std::uint64_t updates_ = 0;
  std::deque<std::vector<std::uint32_t>> newest_;  // the rows of the last updates
  std::size_t kept_ = 0;                           // the length of all of them, at most that of the tensor
};

}  // namespace capstan::store
