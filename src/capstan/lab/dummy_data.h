#pragma once

#include <cstdint>
#include <memory>

#include "capstan/lab/configuration.h"
#include "capstan/lab/data.h"

namespace capstan::lab {

// Bags of identifiers with a class each, all random: seeded, so that every run has the same. Its values:
// max_val (identifiers and classes are 0 … max_val - 1), sample_count, sample_length, and
// sparsity_percentage, the share of identifiers that no sample has. Throws UserError for wrong values.
std::unique_ptr<Data> make_dummy_data(const Configuration& values, std::uint64_t seed);

}  // namespace capstan::lab
