#include "capstan/data/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/random.h"

namespace capstan::data {
namespace {

constexpr std::uint64_t kDomain = 0x6f72646572;  // separates this random stream from others

std::string with_commas(std::uint64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", with_commas(number / 1000), number % 1000);
}

}  // namespace

std::uint64_t Partition::steps_per_epoch() const {
  const auto global = workers * batch;
  return (samples + global - 1) / global;
}

Range Partition::slice(std::uint64_t step, std::uint64_t rank) const {
  CAPSTAN_CHECK(rank < workers && step < steps_per_epoch(), "the partition has this worker and step");
  const auto begin = step * workers * batch;
  const auto size = std::min(workers * batch, samples - begin);
  const auto share = size / workers, longer = size % workers;  // the first `longer` ranks take one more
  const auto first = begin + rank * share + std::min(rank, longer);
  return {first, first + share + (rank < longer ? 1 : 0)};
}

std::string describe_uneven(const Partition& p) {
  const auto steps = p.steps_per_epoch();
  const auto rest = p.samples % (p.workers * p.batch);
  if (rest == 0) return {};
  return fmt::format("{} {} ÷ ({} × {}): {} {} per epoch, {} with {} {}{}", with_commas(p.samples),
                     p.samples == 1 ? "sample" : "samples", p.workers, p.batch, with_commas(steps),
                     steps == 1 ? "step" : "steps", steps == 1 ? "it" : "the last", with_commas(rest),
                     rest == 1 ? "sample" : "samples",
                     rest < p.workers ? fmt::format(", none for {} of the workers", p.workers - rest) : "");
}

std::vector<std::uint32_t> epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch) {
  CAPSTAN_CHECK(samples <= std::numeric_limits<std::uint32_t>::max(), "sample indices have 32 bits");
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  Random random(derive_seed({kDomain, seed, epoch}));
  for (auto left = samples; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

Remainder::Remainder(std::uint64_t samples, std::vector<DataSegment> segments)
    : whole_(samples), segments_(std::move(segments)) {
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    const auto furthest =
        segments_[segment].steps.empty()
            ? 0
            : *std::max_element(segments_[segment].steps.begin(), segments_[segment].steps.end());
    auto& stages = stages_.emplace_back();
    std::uint64_t first = 0;
    for (std::uint64_t epoch = 0; first < furthest || epoch < left_.size(); ++epoch) {
      if (epoch == left_.size()) left_.push_back(whole_);
      stages.push_back({left_[epoch], first});
      const Partition here{left_[epoch], segments_[segment].workers(), segments_[segment].batch};
      const auto done = done_in(segment, epoch);
      for (std::uint64_t rank = 0; rank < done.size(); ++rank) {
        for (std::uint64_t step = 0; step < done[rank]; ++step) left_[epoch] -= here.slice(step, rank).size();
      }
      first += here.steps_per_epoch();
    }
  }
  while (!left_.empty() && left_.back() == whole_) left_.pop_back();
}

std::vector<std::uint64_t> Remainder::done_in(std::size_t segment, std::uint64_t epoch) const {
  const auto& stage = stages_[segment][epoch];
  const auto here =
      Partition{stage.samples, segments_[segment].workers(), segments_[segment].batch}.steps_per_epoch();
  std::vector<std::uint64_t> done;
  for (const auto steps : segments_[segment].steps)
    done.push_back(std::min(here, steps - std::min(steps, stage.first_step)));
  return done;
}

std::uint64_t Remainder::samples(std::uint64_t epoch) const {
  return epoch < left_.size() ? left_[epoch] : whole_;
}

std::vector<std::uint32_t> Remainder::order(std::uint64_t seed, std::uint64_t epoch) const {
  auto order = epoch_order(whole_, seed, epoch);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    if (epoch >= stages_[segment].size()) continue;
    const Partition here{stages_[segment][epoch].samples, segments_[segment].workers(),
                         segments_[segment].batch};
    const auto done = done_in(segment, epoch);
    std::vector<bool> used(order.size());
    for (std::uint64_t rank = 0; rank < done.size(); ++rank) {
      for (std::uint64_t step = 0; step < done[rank]; ++step) {
        const auto slice = here.slice(step, rank);
        std::fill(used.begin() + static_cast<std::ptrdiff_t>(slice.begin),
                  used.begin() + static_cast<std::ptrdiff_t>(slice.end), true);
      }
    }
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!used[i]) left.push_back(order[i]);
    }
    order = std::move(left);
  }
  return order;
}

Sampler::Sampler(const Partition& partition, std::uint64_t rank, std::uint64_t seed,
                 std::vector<DataSegment> earlier)
    : partition_(partition), rank_(rank), seed_(seed), remainder_(partition.samples, std::move(earlier)) {
  CAPSTAN_CHECK(partition.workers > 0 && partition.batch > 0 && rank < partition.workers,
                "the partition has this worker and a batch size");
}

Partition Sampler::of_epoch(std::uint64_t epoch) const {
  return {remainder_.samples(epoch), partition_.workers, partition_.batch};
}

std::uint64_t Sampler::steps(std::uint64_t epoch) const {
  return of_epoch(epoch).steps_per_epoch();
}

std::uint64_t Sampler::total_steps(std::uint64_t epochs) const {
  const auto cut = std::min(epochs, remainder_.first_whole_epoch());
  auto total = (epochs - cut) * partition_.steps_per_epoch();
  for (std::uint64_t epoch = 0; epoch < cut; ++epoch) total += steps(epoch);
  return total;
}

Sampler::Place Sampler::place(std::uint64_t step) const {
  std::uint64_t epoch = 0;
  for (; epoch < remainder_.first_whole_epoch(); ++epoch) {
    if (step < steps(epoch)) return {epoch, step};
    step -= steps(epoch);
  }
  return {epoch + step / partition_.steps_per_epoch(), step % partition_.steps_per_epoch()};
}

std::span<const std::uint32_t> Sampler::batch(std::uint64_t epoch, std::uint64_t step) {
  if (epoch_ != epoch) {
    order_ = remainder_.order(seed_, epoch);
    epoch_ = epoch;
  }
  const auto slice = of_epoch(epoch).slice(step, rank_);
  return std::span(order_).subspan(slice.begin, slice.size());
}

}  // namespace capstan::data
