#include "capstan/lab/dummy_data.h"

#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "capstan/base/random.h"

namespace capstan::lab {
namespace {

constexpr std::uint64_t kDomain = 0x64756d6d79;  // separates this random stream from others
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 32;

// The first `count` of 0 … bound - 1 in a random order.
std::vector<std::int64_t> random_choice(std::int64_t bound, std::int64_t count, Random& random) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(bound));
  std::iota(values.begin(), values.end(), 0);
  for (auto i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
  values.resize(static_cast<std::size_t>(count));
  return values;
}

class DummyData final : public Data {
 public:
  DummyData(std::int64_t samples, std::int64_t length, std::int64_t classes,
            const std::vector<std::int64_t>& identifiers, Random& random)
      : inputs_(at::empty({samples, length}, at::kLong)), targets_(at::empty({samples}, at::kLong)) {
    auto* const inputs = inputs_.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < inputs_.numel(); ++i)
      inputs[i] = identifiers[random.below(identifiers.size())];
    auto* const targets = targets_.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < samples; ++i)
      targets[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(classes)));
  }

  std::int64_t size() const override { return targets_.numel(); }
  Sample item(std::int64_t index) override { return {inputs_[index], targets_[index]}; }
  Sample batch(std::span<const std::uint32_t> indices) override {
    const std::vector<std::int64_t> wide(indices.begin(), indices.end());
    const auto at = at::from_blob(const_cast<std::int64_t*>(wide.data()),
                                  {static_cast<std::int64_t>(wide.size())}, at::kLong);
    return {inputs_.index_select(0, at), targets_.index_select(0, at)};
  }

 private:
  at::Tensor inputs_, targets_;
};

}  // namespace

std::unique_ptr<Data> make_dummy_data(const Configuration& given, std::uint64_t seed) {
  auto values = given;  // with the names of today
  values.accept_old_name("input_samples", "sample_count");
  values.accept_old_name("input_dim", "sample_length");
  const auto bound = values.integer("max_val", 1, kMostNumbers);
  const auto samples = values.integer("sample_count", 1, kMostNumbers);
  const auto length = values.integer("sample_length", 1, kMostNumbers);
  const auto sparsity = values.integer("sparsity_percentage", 0, 99);
  values.check_all_read();
  given.ignore_all();
  if (samples > kMostNumbers / length)
    values.fail("sample_count", fmt::format("times sample_length is more than {}", kMostNumbers));
  const auto used = bound * (100 - sparsity) / 100;
  if (used == 0)
    values.fail("sparsity_percentage",
                fmt::format("leaves none of the {} identifiers: give a larger max_val", bound));
  Random random(derive_seed({kDomain, seed}));
  const auto identifiers = random_choice(bound, used, random);
  return std::make_unique<DummyData>(samples, length, bound, identifiers, random);
}

}  // namespace capstan::lab
