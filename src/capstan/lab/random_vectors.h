#pragma once

#include <cstdint>
#include <memory>

#include "capstan/lab/configuration.h"
#include "capstan/lab/data.h"

namespace capstan::lab {

// Vectors of normally distributed numbers, whose targets are vectors of zeros; seeded, so that every run has
// the same. Its values: sample_count, sample_length, target_length. Throws UserError for wrong values.
std::unique_ptr<Data> make_random_vectors(const Configuration& values, std::uint64_t seed);

}  // namespace capstan::lab
