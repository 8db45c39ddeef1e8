#include "capstan/data/memory_source.h"

#include <utility>

#include "capstan/base/check.h"

namespace capstan::data {

MemorySource::MemorySource(Split split) : split_(std::move(split)) {
  CAPSTAN_CHECK(split_.pixels.size() == split_.count() * split_.shape.pixels(), "pixels for every label");
  CAPSTAN_CHECK(split_.levels.size() == static_cast<std::size_t>(split_.shape.channels),
                "levels for every channel");
}

void MemorySource::render(std::size_t sample, std::uint64_t, float* out) const {
  normalise(split_.image(sample), split_.levels, out);
}

}  // namespace capstan::data
