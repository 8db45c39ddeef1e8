#include "capstan/lab/data.h"

#include <vector>

#include <ATen/ops/stack.h>

namespace capstan::lab {

Sample Data::batch(std::span<const std::uint32_t> indices) {
  std::vector<at::Tensor> inputs, targets;
  for (const auto index : indices) {
    auto sample = item(index);
    inputs.push_back(std::move(sample.input));
    targets.push_back(std::move(sample.target));
  }
  return {at::stack(inputs), at::stack(targets)};
}

}  // namespace capstan::lab
