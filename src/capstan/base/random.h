#pragma once

#include <cstdint>
#include <initializer_list>

namespace capstan {

// One step of SplitMix64: a good 64-bit mix of its argument.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The seed of one random choice: a hash of everything that the choice depends on, in order.
constexpr std::uint64_t derive_seed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t h = 0;
  for (auto p : parts) h = mix64(h ^ p);
  return h;
}

// A small deterministic generator; the same seed gives the same numbers on every machine. Not thread-safe.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix64(state_);
  }
  // Uniform in [0, bound); bound > 0. Multiply-shift: the bias is below 2^-32 for every bound used here.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<__uint128_t>(next()) * bound) >> 64);
  }
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace capstan
