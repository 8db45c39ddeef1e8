#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capstan/data/sample_source.h"

// The floats of a sample, as a batch would contain them.
namespace capstan::testing {

inline std::vector<float> rendered(const data::SampleSource& source, std::size_t sample,
                                   std::uint64_t epoch = 0) {
  std::vector<float> out(source.shape().elements());
  source.render(sample, epoch, out.data());
  return out;
}

inline std::vector<float> target(const data::SampleSource& source, std::size_t sample) {
  std::vector<float> out(source.shape().target_elements());
  source.write_target(sample, out.data());
  return out;
}

}  // namespace capstan::testing
