#include "capstan/lab/random_vectors.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "capstan/base/random.h"

namespace capstan::lab {
namespace {

constexpr std::uint64_t kDomain = 0x766563746f7273;  // separates this random stream from others
constexpr std::int64_t kMostLength = 1 << 20;

class RandomVectors final : public Data {
 public:
  RandomVectors(at::Tensor inputs, at::Tensor targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  std::int64_t size() const override { return inputs_.size(0); }
  Sample item(std::int64_t index) override { return {inputs_[index], targets_[index]}; }

 private:
  const at::Tensor inputs_, targets_;
};

// From 0 (excluded) to 1.
double uniform(Random& random) {
  constexpr auto kSteps = std::uint64_t{1} << 53;
  return static_cast<double>(random.below(kSteps) + 1) / static_cast<double>(kSteps);
}

// By the Box–Muller transform.
double normal(Random& random) {
  const auto radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

}  // namespace

std::unique_ptr<Data> make_random_vectors(const Configuration& values, std::uint64_t seed) {
  const auto samples = values.integer("sample_count", 1, kMostLength);
  const auto length = values.integer("sample_length", 1, kMostLength);
  const auto target_length = values.integer("target_length", 1, kMostLength);
  Random random(derive_seed({kDomain, seed}));
  auto inputs = at::empty({samples, length}, at::kFloat);
  auto* const numbers = inputs.data_ptr<float>();
  for (std::int64_t i = 0; i < inputs.numel(); ++i) numbers[i] = static_cast<float>(normal(random));
  return std::make_unique<RandomVectors>(std::move(inputs), at::zeros({samples, target_length}, at::kFloat));
}

}  // namespace capstan::lab
