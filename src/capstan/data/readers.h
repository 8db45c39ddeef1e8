#pragma once

#include <cstdint>
#include <string>

#include "capstan/data/split.h"

namespace capstan::data {

// 1,797 real digits of 8x8, scaled to 28x28; every fifth is held out for the test.
Splits load_digits();

// The four IDX files, plain or with .gz, in `folder`.
Splits load_mnist(const std::string& folder);

// `name` is synthetic:CxHxW:classes[:N]: N (2048) training images and a quarter as many for the test.
Splits make_synthetic(const std::string& name, std::uint64_t seed);

}  // namespace capstan::data
