#include "capstan/store/dense_shard.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/kernels/compensation.h"
#include "capstan/kernels/copy.h"
#include "capstan/kernels/steps.h"
#include "capstan/kernels/weighted_sum.h"

namespace capstan::store {
namespace {

// Copies of shards of at least this size bypass the cache. Measured with the chunk in cache: below, streaming
// stores slow down the writer and a reader on another core; at 8 MiB they save the writer a tenth, at 100 MB
// a quarter.
constexpr std::size_t kStreamingBytes = 8u << 20;

// Elements per pass where an update needs scratch memory, so that it stays in L1.
constexpr std::size_t kBlock = 2048;

void cut(Range range, std::vector<Range>& chunks) {
  for (auto at = range.begin; at < range.end; at += DenseShard::kChunk)
    chunks.push_back({at, std::min<std::uint64_t>(at + DenseShard::kChunk, range.end)});
}

}  // namespace

std::vector<ShardGroup> shard_groups(const FlatLayout& layout, const ParameterGroups& groups, Range shard) {
  const auto ranges = group_ranges(layout, groups.of_tensors(), groups.size(), shard);
  std::vector<ShardGroup> out;
  for (std::uint32_t g = 0; g < groups.size(); ++g) out.push_back({ranges[g], groups[g].optimizer});
  return out;
}

DenseShard::DenseShard(std::span<float> weights, const optimizer::OptimizerSet& optimizers, bool adaptive,
                       const std::vector<ShardGroup>& groups)
    : weights_(weights), optimizers_(optimizers) {
  cut({0, weights.size()}, whole_);
  if (groups.size() > 1) {
    std::uint64_t elements = 0;
    entries_.clear();
    for (const auto& group : groups) {
      entries_.push_back(group.optimizer);
      auto& chunks = groups_.emplace_back();
      for (const auto& range : group.ranges) {
        cut(range, chunks);
        elements += range.size();
      }
    }
    CAPSTAN_CHECK(elements == weights.size(), "every element is in one group");
  }
  const auto arrays = optimizers.state_names().size() + (adaptive ? 1 : 0);
  for (std::size_t i = 0; i < arrays; ++i) state_.emplace_back(weights.size());
}

const std::vector<Range>& DenseShard::chunks_of(std::size_t group) const {
  CAPSTAN_CHECK(group < groups(), "the shard has this group");
  return groups_.empty() ? whole_ : groups_[group];
}

std::size_t DenseShard::elements(std::size_t group) const {
  if (groups_.empty()) return weights_.size();
  std::size_t sum = 0;
  for (const auto& range : chunks_of(group)) sum += range.size();
  return sum;
}

Range DenseShard::chunk(std::size_t index) const {
  CAPSTAN_CHECK(index < chunks(), "the shard has this chunk");
  return whole_[index];
}

void DenseShard::apply_chunk(std::size_t chunk, const optimizer::UpdateIndex& index,
                             std::span<const optimizer::Contribution> contributions,
                             std::span<float* const> destinations, const UpdateRule& rule,
                             std::size_t group) {
  using Kind = UpdateRule::Kind;
  CAPSTAN_CHECK(chunk < chunks(group), "the group has this chunk");
  const auto range = chunks_of(group)[chunk];
  const bool compensates = rule.kind == Kind::kCompensate || rule.kind == Kind::kCompensateAdaptive;
  if (rule.kind == Kind::kMove) {
    move(range, rule.strength, contributions);
  } else if (compensates && contributions[0].base) {
    CAPSTAN_CHECK(contributions.size() == 1, "one gradient is compensated at a time");
    compensate(group, range, index, contributions[0], rule);
  } else {
    std::vector<optimizer::Contribution> here(contributions.begin(), contributions.end());
    for (auto& c : here) c.gradient += range.begin;
    update(group, index, range, here, rule.rate);
  }
  copy(range, destinations);
}

// Gradients point to the range's first element.
void DenseShard::update(std::size_t group, const optimizer::UpdateIndex& index, Range range,
                        std::span<const optimizer::Contribution> contributions, double rate) {
  const auto entry = entries_[group];
  std::vector<float*> state;
  for (const auto i : optimizers_.state_of(entry)) state.push_back(state_[i].data() + range.begin);
  optimizers_[entry].update(index, weights_of(range), state, contributions, rate);
}

void DenseShard::apply_rows(const RowPart& part, std::span<const std::uint32_t> rows,
                            const optimizer::UpdateIndex& index,
                            std::span<const optimizer::RowContribution> contributions, double rate) {
  const auto entry = entries_.at(part.group);
  std::vector<float*> state;
  for (const auto i : optimizers_.state_of(entry)) state.push_back(state_[i].data());
  optimizers_[entry].update_rows(index, part, rows, weights_.data(), state, contributions, rate);
}

void DenseShard::move(Range range, double keep, std::span<const optimizer::Contribution> contributions) {
  const auto weights = weights_of(range);
  std::vector<kernels::Term> terms;
  for (const auto& c : contributions) terms.push_back({c.gradient + range.begin, c.factor});
  if (keep == 0) return kernels::weighted_sum(terms, 0, weights);
  alignas(64) float sum[kBlock];
  for (std::size_t at = 0; at < weights.size(); at += kBlock) {
    const std::span<float> piece(sum, std::min(kBlock, weights.size() - at));
    kernels::weighted_sum(terms, at, piece);
    kernels::blend_step(static_cast<float>(keep), piece, weights.subspan(at, piece.size()));
  }
}

void DenseShard::compensate(std::size_t group, Range range, const optimizer::UpdateIndex& index,
                            const optimizer::Contribution& c, const UpdateRule& rule) {
  const auto strength = static_cast<float>(rule.strength);
  alignas(64) float corrected[kBlock];
  for (auto at = range.begin; at < range.end; at += kBlock) {
    const Range block{at, std::min<std::uint64_t>(at + kBlock, range.end)};
    const auto weights = weights_of(block);
    const std::span<const float> gradient(c.gradient + at, weights.size());
    if (rule.kind == UpdateRule::Kind::kCompensate) {
      kernels::compensate(strength, gradient, weights.data(), c.base + at, corrected);
    } else {
      CAPSTAN_CHECK(state_.size() > optimizers_.state_names().size(),
                    "the shard keeps the mean of squared gradients");
      kernels::compensate_adaptive(strength, gradient, weights.data(), c.base + at, state_.back().data() + at,
                                   corrected);
    }
    const optimizer::Contribution merged{corrected, c.factor};
    update(group, index, block, {&merged, 1}, rule.rate);
  }
}

void DenseShard::make_sum() {
  if (!sum_) sum_.emplace(weights_.size());
}

void DenseShard::accumulate_chunk(std::size_t index, const optimizer::Contribution& contribution,
                                  bool first) {
  const auto range = chunk(index);
  const std::span<float> sum(sum_->data() + range.begin, range.size());
  const kernels::Term term{contribution.gradient + range.begin, contribution.factor};
  if (first) {
    kernels::weighted_sum({&term, 1}, 0, sum);
  } else {
    kernels::add_weighted({&term, 1}, 0, sum);
  }
}

void DenseShard::copy_chunk(std::size_t index, std::span<float* const> destinations) const {
  copy(chunk(index), destinations);
}

void DenseShard::copy(Range range, std::span<float* const> destinations) const {
  const auto stores =
      weights_.size_bytes() < kStreamingBytes ? kernels::Stores::kCached : kernels::Stores::kStreaming;
  for (float* to : destinations) kernels::copy(weights_of(range), {to + range.begin, range.size()}, stores);
}

void DenseShard::save_chunk(std::size_t index, std::span<float* const> destinations) const {
  CAPSTAN_CHECK(destinations.size() == state_.size() + 1, "one destination for each array");
  const auto range = chunk(index);
  copy(range, destinations.first(1));
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const std::span<const float> array = state_[i];
    kernels::copy(array.subspan(range.begin, range.size()), {destinations[i + 1] + range.begin, range.size()},
                  kernels::Stores::kCached);
  }
}

std::vector<std::span<const float>> DenseShard::state() const {
  return {state_.begin(), state_.end()};
}

std::vector<std::span<float>> DenseShard::mutable_state() {
  return {state_.begin(), state_.end()};
}

}  // namespace capstan::store
