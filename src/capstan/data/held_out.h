#pragma once

#include <cstddef>
#include <string>

#include "capstan/data/split.h"

namespace capstan::data {

// Which samples of a dataset without a test part are for testing: every fifth in the order of the file or
// listing, that is 4, 9, 14 …
constexpr bool is_held_out(std::size_t sample) {
  return sample % 5 == 4;
}
// Throws UserError if `count` samples of `place` are too few to hold one out.
void check_enough(std::size_t count, const std::string& place);

// Divides samples by the rule.
Splits hold_out(Split all, const std::string& place);

}  // namespace capstan::data
