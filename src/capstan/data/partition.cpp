#include "capstan/data/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "capstan/base/check.h"
#include "capstan/base/random.h"

namespace capstan::data {
namespace {

constexpr std::uint64_t kDomain = 0x6f72646572;  // keeps these random numbers apart from others

}  // namespace

std::uint64_t Partition::steps_per_epoch() const {
  const auto global = workers * batch;
  return (samples + global - 1) / global;
}

Range Partition::slice(std::uint64_t step, std::uint64_t rank) const {
  CAPSTAN_CHECK(rank < workers && step < steps_per_epoch(), "a worker and a step of this partition");
  const auto begin = step * workers * batch;
  const auto size = std::min(workers * batch, samples - begin);
  const auto share = size / workers, longer = size % workers;  // the first `longer` ranks take one more
  const auto first = begin + rank * share + std::min(rank, longer);
  return {first, first + share + (rank < longer ? 1 : 0)};
}

std::vector<std::uint32_t> epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
  CAPSTAN_CHECK(samples <= std::numeric_limits<std::uint32_t>::max(), "sample indices of 32 bits");
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  Random random(derive_seed({kDomain, seed, epoch}));
  for (auto left = samples; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

Sampler::Sampler(const Partition& partition, std::uint64_t rank, std::uint64_t seed)
    : partition_(partition), rank_(rank), seed_(seed) {
  CAPSTAN_CHECK(partition.workers > 0 && partition.batch > 0 && rank < partition.workers,
                "a worker and its batch");
}

std::span<const std::uint32_t> Sampler::batch(std::uint64_t epoch, std::uint64_t step) {
  if (epoch_ != epoch) {
    order_ = epoch_order(partition_.samples, seed_, epoch);
    epoch_ = epoch;
  }
  const auto slice = partition_.slice(step, rank_);
  return std::span(order_).subspan(slice.begin, slice.size());
}

}  // namespace capstan::data
