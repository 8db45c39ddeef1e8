#include "capstan/store/dense_shard.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/kernels/compensation.h"
#include "capstan/kernels/copy.h"
#include "capstan/kernels/steps.h"
#include "capstan/kernels/weighted_sum.h"

namespace capstan::store {
namespace {

// From here on copies go past the cache. Measured with the chunk warm: below, streaming slows the writer and
// the reader on another core; from 8 MiB on it saves the writer a tenth, at 100 MB a quarter.
constexpr std::size_t kStreamingBytes = 8u << 20;

// Elements worked on at a time where a step needs scratch, so that it stays in L1.
constexpr std::size_t kBlock = 2048;

}  // namespace

DenseShard::DenseShard(std::span<float> weights, const optimizer::Optimizer& optimizer, bool adaptive)
    : weights_(weights),
      optimizer_(optimizer),
      optimizer_state_(static_cast<std::size_t>(optimizer.state_tensors())) {
  for (std::size_t i = 0; i < optimizer_state_ + (adaptive ? 1 : 0); ++i) state_.emplace_back(weights.size());
}

std::size_t DenseShard::chunks() const {
  return (weights_.size() + kChunk - 1) / kChunk;
}

std::span<float> DenseShard::chunk_weights(std::size_t chunk) const {
  CAPSTAN_CHECK(chunk < chunks(), "a chunk of the shard");
  const std::size_t begin = chunk * kChunk;
  return weights_.subspan(begin, std::min(kChunk, weights_.size() - begin));
}

void DenseShard::apply_chunk(std::size_t chunk, Version before,
                             std::span<const optimizer::Contribution> contributions,
                             std::span<float* const> destinations, const UpdateRule& rule) {
  using Kind = UpdateRule::Kind;
  const bool compensates = rule.kind == Kind::kCompensate || rule.kind == Kind::kCompensateAdaptive;
  if (rule.kind == Kind::kMove) {
    move_chunk(chunk, rule.strength, contributions);
  } else if (compensates && contributions[0].base) {
    CAPSTAN_CHECK(contributions.size() == 1, "one gradient at a time");
    compensate_chunk(chunk, before, contributions[0], rule);
  } else {
    const std::size_t begin = chunk * kChunk;
    std::vector<optimizer::Contribution> here(contributions.begin(), contributions.end());
    for (auto& c : here) c.gradient += begin;
    std::vector<float*> state;
    for (std::size_t i = 0; i < optimizer_state_; ++i) state.push_back(state_[i].data() + begin);
    optimizer_.update(before, chunk_weights(chunk), state, here, rule.rate);
  }
  copy_chunk(chunk, destinations);
}

void DenseShard::move_chunk(std::size_t chunk, double keep,
                            std::span<const optimizer::Contribution> contributions) {
  const auto weights = chunk_weights(chunk);
  std::vector<kernels::Term> terms;
  for (const auto& c : contributions) terms.push_back({c.gradient + chunk * kChunk, c.factor});
  if (keep == 0) return kernels::weighted_sum(terms, 0, weights);
  alignas(64) float sum[kBlock];
  for (std::size_t at = 0; at < weights.size(); at += kBlock) {
    const std::span<float> piece(sum, std::min(kBlock, weights.size() - at));
    kernels::weighted_sum(terms, at, piece);
    kernels::blend_step(static_cast<float>(keep), piece, weights.subspan(at, piece.size()));
  }
}

void DenseShard::compensate_chunk(std::size_t chunk, Version before, const optimizer::Contribution& c,
                                  const UpdateRule& rule) {
  const auto whole = chunk_weights(chunk);
  const auto strength = static_cast<float>(rule.strength);
  alignas(64) float corrected[kBlock];
  std::vector<float*> state(optimizer_state_);
  for (std::size_t in_chunk = 0; in_chunk < whole.size(); in_chunk += kBlock) {
    const auto at = chunk * kChunk + in_chunk;
    const auto weights = whole.subspan(in_chunk, std::min(kBlock, whole.size() - in_chunk));
    const std::span<const float> gradient(c.gradient + at, weights.size());
    if (rule.kind == UpdateRule::Kind::kCompensate) {
      kernels::compensate(strength, gradient, weights.data(), c.base + at, corrected);
    } else {
      CAPSTAN_CHECK(state_.size() > optimizer_state_, "a shard that keeps the mean of squares");
      kernels::compensate_adaptive(strength, gradient, weights.data(), c.base + at, state_.back().data() + at,
                                   corrected);
    }
    for (std::size_t i = 0; i < optimizer_state_; ++i) state[i] = state_[i].data() + at;
    const optimizer::Contribution merged{corrected, c.factor};
    optimizer_.update(before, weights, state, {&merged, 1}, rule.rate);
  }
}

void DenseShard::make_sum() {
  if (!sum_) sum_.emplace(weights_.size());
}

void DenseShard::fold_chunk(std::size_t chunk, const optimizer::Contribution& contribution, bool first) {
  const std::size_t begin = chunk * kChunk;
  const std::span<float> sum(sum_->data() + begin, chunk_weights(chunk).size());
  const kernels::Term term{contribution.gradient + begin, contribution.factor};
  if (first) {
    kernels::weighted_sum({&term, 1}, 0, sum);
  } else {
    kernels::add_weighted({&term, 1}, 0, sum);
  }
}

void DenseShard::copy_chunk(std::size_t chunk, std::span<float* const> destinations) const {
  const auto from = chunk_weights(chunk);
  const auto stores =
      weights_.size_bytes() < kStreamingBytes ? kernels::Stores::kCached : kernels::Stores::kStreaming;
  for (float* to : destinations) kernels::copy(from, {to + chunk * kChunk, from.size()}, stores);
}

void DenseShard::save_chunk(std::size_t chunk, std::span<float* const> destinations) const {
  CAPSTAN_CHECK(destinations.size() == state_.size() + 1, "one destination for each array");
  const auto size = chunk_weights(chunk).size();
  copy_chunk(chunk, destinations.first(1));
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const std::span<const float> array = state_[i];
    kernels::copy(array.subspan(chunk * kChunk, size), {destinations[i + 1] + chunk * kChunk, size},
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
