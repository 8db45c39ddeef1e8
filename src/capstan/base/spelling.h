#pragma once

#include <span>
#include <string>
#include <string_view>

namespace capstan {

// The candidate with the smallest edit distance to `word`; empty if none is close.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace capstan
