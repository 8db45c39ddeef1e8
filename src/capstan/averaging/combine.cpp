#include "capstan/averaging/combine.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "capstan/base/check.h"
#include "capstan/kernels/weighted_sum.h"

namespace capstan::averaging {
namespace {

// Elements of one piece of work: enough to make the hand-over to a thread cheap, few enough that threads
// finish at nearly the same time.
constexpr std::size_t kPiece = std::size_t{64} * 1024;

// Calls part(begin, end) for ranges of `count` items that cover all of them.
template <class Part>
void in_pieces(server::Pool& pool, std::size_t count, std::size_t each, const Part& part) {
  const auto pieces = (count + each - 1) / each;
  pool.run_with_caller(pieces, [&](std::size_t i) { part(i * each, std::min(count, (i + 1) * each)); });
}

std::vector<kernels::Term> terms_of(std::span<const Gradient> inputs, float factor) {
  std::vector<kernels::Term> terms;
  for (const auto& input : inputs) terms.push_back({input.values.data(), factor});
  return terms;
}

// Walks the rows of a union and knows which inputs have the current one.
class RowCursor {
 public:
  // Begins at the first row that is at least `from`.
  RowCursor(std::span<const Gradient> inputs, std::uint32_t from) : inputs_(inputs) {
    for (const auto& input : inputs)
      next_.push_back(
          static_cast<std::size_t>(std::ranges::lower_bound(input.rows, from) - input.rows.begin()));
  }

  // The lowest row that has not been passed; kEnd after the last.
  static constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest() const {
    auto row = kEnd;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (next_[k] < inputs_[k].rows.size()) row = std::min<std::uint64_t>(row, inputs_[k].rows[next_[k]]);
    return row;
  }
  bool has(std::size_t input, std::uint32_t row) const {
    return next_[input] < inputs_[input].rows.size() && inputs_[input].rows[next_[input]] == row;
  }
  std::size_t place(std::size_t input) const { return next_[input]; }
  void pass(std::uint32_t row) {
    for (std::size_t k = 0; k < inputs_.size(); ++k) next_[k] += has(k, row) ? 1 : 0;
  }

 private:
  std::span<const Gradient> inputs_;
  std::vector<std::size_t> next_;  // by input: place in its list of rows
};

// Consecutive rows of the union that the same inputs have lie side by side in all of them, so that they are
// one sum.
void combine_part(std::span<const Gradient> inputs, float factor, std::size_t columns,
                  std::span<const std::uint32_t> rows, std::span<float> values) {
  RowCursor cursor(inputs, rows.front());
  std::vector<kernels::Term> terms;
  std::vector<bool> members(inputs.size());
  for (std::size_t begin = 0; begin < rows.size();) {
    terms.clear();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      members[k] = cursor.has(k, rows[begin]);
      if (members[k]) terms.push_back({inputs[k].values.data() + cursor.place(k) * columns, factor});
    }
    CAPSTAN_CHECK(!terms.empty(), "at least one input has each row of a union");
    const auto is_same = [&](std::uint32_t row) {
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (members[k] != cursor.has(k, row)) return false;
      return true;
    };
    auto end = begin;
    do cursor.pass(rows[end++]);
    while (end < rows.size() && is_same(rows[end]));
    kernels::weighted_sum(terms, 0, values.subspan(begin * columns, (end - begin) * columns));
    begin = end;
  }
}

}  // namespace

void combine(std::span<const Gradient> inputs, float factor, std::span<float> out, server::Pool& pool) {
  const auto terms = terms_of(inputs, factor);
  in_pieces(pool, out.size(), kPiece, [&](std::size_t begin, std::size_t end) {
    kernels::weighted_sum(terms, begin, out.subspan(begin, end - begin));
  });
}

void add(const Gradient& input, std::span<float> out, server::Pool& pool) {
  const auto terms = terms_of({&input, 1}, 1);
  in_pieces(pool, out.size(), kPiece, [&](std::size_t begin, std::size_t end) {
    kernels::add_weighted(terms, begin, out.subspan(begin, end - begin));
  });
}

std::size_t unite_rows(std::span<const Gradient> inputs, std::span<std::uint32_t> rows) {
  RowCursor cursor(inputs, 0);
  std::size_t count = 0;
  for (auto row = cursor.lowest(); row != RowCursor::kEnd; row = cursor.lowest()) {
    CAPSTAN_CHECK(count < rows.size(), "a union has no more rows than its bucket");
    rows[count++] = static_cast<std::uint32_t>(row);
    cursor.pass(static_cast<std::uint32_t>(row));
  }
  return count;
}

void combine_rows(std::span<const Gradient> inputs, float factor, std::size_t columns,
                  std::span<const std::uint32_t> rows, std::span<float> values, server::Pool& pool) {
  in_pieces(pool, rows.size(), std::max<std::size_t>(1, kPiece / columns),
            [&](std::size_t begin, std::size_t end) {
              combine_part(inputs, factor, columns, rows.subspan(begin, end - begin),
                           values.subspan(begin * columns, (end - begin) * columns));
            });
}

}  // namespace capstan::averaging
