#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "capstan/checkpoint/safetensors.h"

namespace capstan::testing {

// Tensors with unusual shapes, kinds and names, and the names as a reader must see them.
struct OddTensors {
  std::vector<float> large = [] {
    std::vector<float> values(3 * 4 * 50 * 120);
    std::iota(values.begin(), values.end(), -1000.0f);
    return values;
  }();
  std::vector<float> one = {-0.0625f}, count = {123456}, counts = {-3, 0, 70000}, none;
  std::vector<checkpoint::TensorView> tensors = {
      {"conv.weight", {3, 4, 50, 120}, large},  // its storage needs a number of four bytes
      {"scalar", {}, one},
      {"bn.num_batches_tracked", {}, count, true},
      {"counts", {3, 1}, counts, true},
      {"empty", {0, 4}, none},
      {"empty and wide", {0, 5'000'000'000}, none},  // its shape needs a number of more
      {"vector", {1}, one},
      {"\xc3\xbcn\xc3\xaf"
       "code \"q\" 'p' \\ \n \xf0\x9f\x98\x80",
       {1, 1, 1, 1, 1},
       one},
      {"", {1, 1}, one},
      {"bad \xff", {1}, one},
  };
  static constexpr std::ptrdiff_t kWide = 5;
  std::vector<std::string> names = [this] {
    std::vector<std::string> list;
    for (const auto& t : tensors) list.push_back(t.name);
    list.back() = "bad \xef\xbf\xbd";
    return list;
  }();
};

}  // namespace capstan::testing
