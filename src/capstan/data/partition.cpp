#include "capstan/data/partition.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/random.h"

namespace capstan::data {
namespace {

constexpr auto kEndless = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kDomain = 0x6f72646572;  // separates this random stream from others

std::string with_commas(std::uint64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", with_commas(number / 1000), number % 1000);
}

std::vector<std::uint32_t> own_order(std::uint64_t samples) {
  CAPSTAN_CHECK(samples <= std::numeric_limits<std::uint32_t>::max(), "sample indices have 32 bits");
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  return order;
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

std::uint64_t Partition::used(std::uint64_t steps, std::uint64_t rank) const {
  const auto full = samples / (workers * batch);
  return steps <= full ? steps * batch : full * batch + slice(full, rank).size();
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
  auto order = own_order(samples);
  Random random(derive_seed({kDomain, seed, epoch}));
  for (auto left = samples; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<std::uint32_t> in_columns(std::span<const std::uint32_t> samples, std::uint64_t width) {
  CAPSTAN_CHECK(width > 0, "a batch has places");
  const auto rows = (samples.size() + width - 1) / width;
  const auto longer = rows == 0 ? 0 : samples.size() - (rows - 1) * width;  // columns with `rows` samples
  std::vector<std::uint32_t> order;
  order.reserve(samples.size());
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto columns = row + 1 < rows ? width : longer;
    for (std::uint64_t c = 0; c < columns; ++c)
      order.push_back(samples[c * rows - (c > longer ? c - longer : 0) + row]);
  }
  return order;
}

Remainder::Remainder(std::uint64_t samples, std::vector<DataSegment> segments)
    : whole_(samples), segments_(std::move(segments)), runs_{{0, samples}} {
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) subtract(segment);
}

// The number of epochs has no effect on the time: each worker divides them at the one in which it stopped.
void Remainder::subtract(std::size_t segment) {
  const auto before = std::exchange(runs_, {});
  auto& stages = stages_.emplace_back();
  std::uint64_t first_step = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& run = before[i];
    const auto end = i + 1 < before.size() ? before[i + 1].first_epoch : kEndless;
    stages.push_back({run, first_step});
    const auto here = partition(segment, run.samples);
    const auto steps_per_epoch = here.steps_per_epoch();
    std::vector<std::uint64_t> begins = {run.first_epoch};
    for (const auto steps : segments_[segment].steps) {
      if (steps_per_epoch == 0 || steps <= first_step) continue;
      const auto stopped_in = run.first_epoch + (steps - first_step) / steps_per_epoch;
      for (const auto epoch : {stopped_in, stopped_in + 1})
        if (epoch > run.first_epoch && epoch < end) begins.push_back(epoch);
    }
    std::ranges::sort(begins);
    for (const auto epoch : begins) {
      auto left = run.samples;
      const auto done = done_in(segment, epoch);
      for (std::uint64_t rank = 0; rank < done.size(); ++rank) left -= here.used(done[rank], rank);
      if (runs_.empty() || runs_.back().samples != left) runs_.push_back({epoch, left});
    }
    const auto epochs = end - run.first_epoch;
    const bool is_beyond = steps_per_epoch > (kEndless - first_step) / epochs;
    first_step = is_beyond ? kEndless : first_step + epochs * steps_per_epoch;
  }
}

Partition Remainder::partition(std::size_t segment, std::uint64_t samples) const {
  return {samples, segments_[segment].workers(), segments_[segment].batch};
}

const Remainder::Stage& Remainder::stage(std::size_t segment, std::uint64_t epoch) const {
  const auto& stages = stages_[segment];
  return *std::prev(
      std::ranges::upper_bound(stages, epoch, {}, [](const Stage& s) { return s.run.first_epoch; }));
}

std::vector<std::uint64_t> Remainder::done_in(std::size_t segment, std::uint64_t epoch) const {
  const auto& [run, first_step] = stage(segment, epoch);
  const auto here = partition(segment, run.samples).steps_per_epoch();
  const auto epochs = epoch - run.first_epoch;  // of the run, before this one
  std::vector<std::uint64_t> done;
  for (const auto steps : segments_[segment].steps) {
    const auto in_run = steps - std::min(steps, first_step);
    const bool is_reached = here > 0 && in_run / here >= epochs;
    done.push_back(is_reached ? std::min(here, in_run - epochs * here) : 0);
  }
  return done;
}

std::uint64_t Remainder::samples(std::uint64_t epoch) const {
  return std::prev(std::ranges::upper_bound(runs_, epoch, {}, &Run::first_epoch))->samples;
}

std::vector<std::uint32_t> Remainder::order(std::uint64_t seed, std::uint64_t epoch, SampleOrder kind) const {
  const bool in_own_order = kind != SampleOrder::kShuffled;
  auto order = in_own_order ? own_order(whole_) : epoch_order(whole_, seed, epoch);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    const auto done = done_in(segment, epoch);
    if (std::ranges::max(done) == 0) continue;
    const auto here = partition(segment, stage(segment, epoch).run.samples);
    if (kind == SampleOrder::kColumns) order = in_columns(order, here.workers * here.batch);
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
    if (in_own_order) std::ranges::sort(order);
  }
  return order;
}

Sampler::Sampler(const Partition& partition, std::uint64_t rank, std::uint64_t seed,
                 std::vector<DataSegment> earlier, SampleOrder kind)
    : partition_(partition),
      rank_(rank),
      seed_(seed),
      kind_(kind),
      remainder_(partition.samples, std::move(earlier)) {
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
  std::uint64_t total = 0;
  const auto& runs = remainder_.runs();
  for (std::size_t i = 0; i < runs.size() && runs[i].first_epoch < epochs; ++i) {
    const auto end = i + 1 < runs.size() ? std::min(epochs, runs[i + 1].first_epoch) : epochs;
    total += (end - runs[i].first_epoch) * steps(runs[i].first_epoch);
  }
  return total;
}

Sampler::Place Sampler::place(std::uint64_t step) const {
  const auto& runs = remainder_.runs();
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const auto here = steps(runs[i].first_epoch), epochs = runs[i + 1].first_epoch - runs[i].first_epoch;
    if (here == 0) continue;
    if (step / here < epochs) return {runs[i].first_epoch + step / here, step % here};
    step -= epochs * here;
  }
  const auto here = partition_.steps_per_epoch();
  return {remainder_.first_whole_epoch() + step / here, step % here};
}

std::span<const std::uint32_t> Sampler::batch(std::uint64_t epoch, std::uint64_t step) {
  if (epoch_ != epoch) {
    order_ = remainder_.order(seed_, epoch, kind_);
    if (kind_ == SampleOrder::kColumns) order_ = in_columns(order_, partition_.workers * partition_.batch);
    epoch_ = epoch;
  }
  const auto slice = of_epoch(epoch).slice(step, rank_);
  return std::span(order_).subspan(slice.begin, slice.size());
}

}  // namespace capstan::data
