#include "capstan/data/held_out.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::size_t kLeast = 5;

// Moves the rows of held-out samples from `all` to `test`.
template <class T>
void divide(std::vector<T>& all, std::size_t row, std::vector<T>& test) {
  if (all.empty()) return;
  auto kept = all.begin();
  for (std::size_t sample = 0; sample * row < all.size(); ++sample) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(sample * row);
    if (is_held_out(sample))
      test.insert(test.end(), from, from + static_cast<std::ptrdiff_t>(row));
    else
      kept = std::copy_n(from, row, kept);
  }
  all.erase(kept, all.end());
  all.shrink_to_fit();
}

}  // namespace

void check_enough(std::size_t count, const std::string& place) {
  if (count >= kLeast) return;
  throw UserError(fmt::format("{} has {}; every fifth is for testing, so it needs at least {}", place,
                              counted(count, "sample"), kLeast));
}

Splits hold_out(Split all, const std::string& place) {
  check_enough(all.count(), place);
  Splits out;
  out.test.shape = all.shape;
  const auto elements = all.shape.elements();
  divide(all.pixels, elements, out.test.pixels);
  divide(all.values, elements, out.test.values);
  divide(all.doubles, elements, out.test.doubles);
  divide(all.labels, 1, out.test.labels);
  divide(all.targets, all.shape.target_elements(), out.test.targets);
  out.train = std::move(all);
  return out;
}

}  // namespace capstan::data
