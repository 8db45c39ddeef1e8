#include "capstan/store/dense_shard.h"

#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "capstan/base/random.h"

namespace capstan::store {
namespace {

using optimizer::Contribution;
using optimizer::Kind;
using optimizer::OptimizerSet;
using optimizer::Options;
using optimizer::Schedule;

constexpr std::size_t kChunk = DenseShard::kChunk;

std::vector<float> random_array(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  std::vector<float> array(size);
  for (auto& x : array) x = static_cast<float>(2 * random.uniform() - 1);
  return array;
}

void apply_all(DenseShard& shard, std::uint64_t before, const std::vector<Contribution>& contributions,
               const std::vector<float*>& destinations) {
  for (std::size_t c = 0; c < shard.chunks(); ++c)
    shard.apply_chunk(c, Version{before}, contributions, destinations);
}

TEST(DenseShard, CountsItsChunks) {
  const OptimizerSet none(Options{.kind = Kind::kNone}, Schedule{});
  for (auto [size, chunks] :
       {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {kChunk, 1}, {kChunk + 1, 2}}) {
    std::vector<float> weights(size);
    EXPECT_EQ(DenseShard(weights, none).chunks(), chunks) << size;
  }
}

TEST(DenseShard, EqualsAPlainLoopAndCopiesTheResult) {
  const std::size_t sizes[] = {5, kChunk, 2 * kChunk + 17, (2 << 20) + 5};  // the last streams its copies
  for (std::size_t size : sizes) {
    auto weights = random_array(1, size);
    std::vector<double> w(weights.begin(), weights.end()), buffer(size);
    const auto a = random_array(2, size), b = random_array(3, size);
    const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.1, .momentum = 0.9}, Schedule{});
    DenseShard shard(weights, sgd);
    std::vector<float> left(size), right(size);
    for (std::uint64_t v = 0; v < 3; ++v) {
      apply_all(shard, v, {{a.data(), 0.5f}, {b.data(), 0.25f}}, {left.data(), right.data()});
      for (std::size_t i = 0; i < size; ++i) {
        buffer[i] = 0.9 * buffer[i] + 0.5 * static_cast<double>(a[i]) + 0.25 * static_cast<double>(b[i]);
        w[i] -= 0.1 * buffer[i];
        ASSERT_NEAR(weights[i], w[i], 1e-6) << "size " << size << ", version " << v << ", element " << i;
        ASSERT_NEAR(shard.state()[0][i], buffer[i], 1e-6);
      }
      ASSERT_EQ(left, weights);
      ASSERT_EQ(right, weights);
    }
  }
}

// w = keep·w + Σ factor·x, without the optimizer and its state.
TEST(DenseShard, MovesTowardsWeights) {
  const std::size_t size = kChunk + 4099;
  const auto a = random_array(2, size), b = random_array(3, size);
  const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.1, .momentum = 0.9}, Schedule{});
  for (const double keep : {0.0, 0.4}) {
    auto weights = random_array(1, size);
    const auto old = weights;
    DenseShard shard(weights, sgd);
    const std::vector<Contribution> contributions = {{a.data(), 0.5f}, {b.data(), 0.25f}};
    for (std::size_t c = 0; c < shard.chunks(); ++c)
      shard.apply_chunk(c, Version{3}, contributions, {}, {UpdateRule::Kind::kMove, 1, keep});
    for (std::size_t i = 0; i < size; ++i) {
      const double expected = keep * static_cast<double>(old[i]) + 0.5 * static_cast<double>(a[i]) +
                              0.25 * static_cast<double>(b[i]);
      ASSERT_NEAR(weights[i], expected, 1e-6) << i;
      ASSERT_EQ(shard.state()[0][i], 0);
    }
  }
}

TEST(DenseShard, CompensatesAGradientForItsDelay) {
  const std::size_t size = kChunk + 4099;
  const auto g = random_array(2, size), base = random_array(3, size);
  const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.1, .momentum = 0.9}, Schedule{});
  auto weights = random_array(1, size);
  std::vector<double> w(weights.begin(), weights.end()), buffer(size);
  DenseShard shard(weights, sgd, true);
  ASSERT_EQ(shard.state().size(), 2u);
  std::vector<double> square(size);
  for (std::uint64_t v = 0; v < 3; ++v) {
    const bool adaptive = v == 2;
    const Contribution contribution{g.data(), 1, base.data()};
    const UpdateRule rule{adaptive ? UpdateRule::Kind::kCompensateAdaptive : UpdateRule::Kind::kCompensate,
                          0.5, 0.3};
    for (std::size_t c = 0; c < shard.chunks(); ++c)
      shard.apply_chunk(c, Version{v}, {&contribution, 1}, {}, rule);
    for (std::size_t i = 0; i < size; ++i) {
      const double x = g[i];
      double strength = 0.3;
      if (adaptive) {
        square[i] = 0.95 * square[i] + 0.05 * x * x;
        strength /= std::sqrt(square[i] + 1e-7);
      }
      const double corrected = x + strength * x * x * (w[i] - static_cast<double>(base[i]));
      buffer[i] = 0.9 * buffer[i] + corrected;
      w[i] -= 0.5 * 0.1 * buffer[i];
      ASSERT_NEAR(weights[i], w[i], 2e-6) << i;
      ASSERT_NEAR(shard.state()[1][i], square[i], 1e-6);
    }
  }
}

TEST(DenseShard, KeepsASumBesideTheWeights) {
  const std::size_t size = kChunk + 17;
  auto weights = random_array(1, size);
  const auto old = weights, a = random_array(2, size), b = random_array(3, size);
  const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.5}, Schedule{});
  DenseShard shard(weights, sgd);
  shard.make_sum();
  const auto accumulate = [&](const std::vector<float>& x, float factor, bool first) {
    for (std::size_t c = 0; c < shard.chunks(); ++c) shard.accumulate_chunk(c, {x.data(), factor}, first);
  };
  accumulate(b, 7, true);
  accumulate(a, 2, true);  // a new sum replaces the old one
  accumulate(b, 0.25f, false);
  EXPECT_EQ(weights, old);
  apply_all(shard, 0, {shard.sum()}, {});
  for (std::size_t i = 0; i < size; ++i)
    ASSERT_NEAR(weights[i],
                static_cast<double>(old[i]) -
                    0.5 * (2 * static_cast<double>(a[i]) + 0.25 * static_cast<double>(b[i])),
                1e-6);
}

TEST(DenseShard, AChunkChangesOnlyItself) {
  const std::size_t size = 3 * kChunk;
  auto weights = random_array(1, size);
  const auto old = weights;
  const std::vector<float> gradient(size, 1);
  const OptimizerSet none(Options{.kind = Kind::kNone}, Schedule{});
  DenseShard shard(weights, none);
  std::vector<float> destination(size, -7);
  const Contribution contribution{gradient.data(), 1};
  float* const to[] = {destination.data()};
  shard.apply_chunk(1, Version{0}, {&contribution, 1}, to);
  for (std::size_t i = 0; i < size; ++i) {
    const bool inside = i / kChunk == 1;
    ASSERT_EQ(weights[i], inside ? old[i] + 1 : old[i]);
    ASSERT_EQ(destination[i], inside ? old[i] + 1 : -7);
  }
}

TEST(DenseShard, CopiesAChunkUnchanged) {
  const std::size_t size = kChunk + 3;
  auto weights = random_array(1, size);
  const OptimizerSet none(Options{.kind = Kind::kNone}, Schedule{});
  const DenseShard shard(weights, none);
  std::vector<float> copy(size);
  float* const to[] = {copy.data()};
  for (std::size_t c = 0; c < shard.chunks(); ++c) shard.copy_chunk(c, to);
  EXPECT_EQ(copy, weights);
}

TEST(DenseShard, SeveralThreadsGiveTheBitsOfOne) {
  const std::size_t size = 9 * kChunk + 11;
  auto one = random_array(1, size), many = one;
  const auto a = random_array(2, size), b = random_array(3, size);
  const std::vector<Contribution> contributions = {{a.data(), 0.5f}, {b.data(), 0.5f}};
  const OptimizerSet adam(Options{.kind = Kind::kAdam}, Schedule{});
  DenseShard single(one, adam), threaded(many, adam);
  for (std::uint64_t v = 0; v < 2; ++v) {
    apply_all(single, v, contributions, {});
    const auto half = [&](std::size_t first) {
      for (std::size_t c = first; c < threaded.chunks(); c += 2)
        threaded.apply_chunk(c, Version{v}, contributions, {});
    };
    std::thread odd(half, 1);
    half(0);
    odd.join();
  }
  EXPECT_EQ(one, many);
}

TEST(DenseShard, ResumesFromSavedWeightsAndState) {
  const std::size_t size = kChunk + 100;
  auto weights = random_array(1, size);
  const auto gradient = random_array(2, size);
  const std::vector<Contribution> contributions = {{gradient.data(), 1}};
  const OptimizerSet adam(Options{.kind = Kind::kAdam}, Schedule{});
  DenseShard shard(weights, adam);
  apply_all(shard, 0, contributions, {});

  auto resumed_weights = weights;
  DenseShard resumed(resumed_weights, adam);
  const auto saved = shard.state();
  const auto restored = resumed.mutable_state();
  ASSERT_EQ(saved.size(), 2u);
  for (std::size_t k = 0; k < saved.size(); ++k)
    std::copy(saved[k].begin(), saved[k].end(), restored[k].begin());

  apply_all(shard, 1, contributions, {});
  apply_all(resumed, 1, contributions, {});
  EXPECT_EQ(resumed_weights, weights);
}

// Each group is updated separately, at its own version and the job's learning rate; nothing else changes.
TEST(DenseShard, UpdatesTheElementsOfOneGroupOnly) {
  const std::size_t size = 3 * kChunk + 100;
  const std::vector<ShardGroup> groups = {{{{0, 7}, {kChunk + 20, size}}}, {{{7, kChunk + 20}}}};
  auto weights = random_array(1, size);
  const auto a = random_array(2, size);
  std::vector<double> w(weights.begin(), weights.end()), buffer(size);
  const Schedule schedule{.kind = Schedule::Kind::kStep, .step_every = 10, .step_gamma = 0.5};
  const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.1, .momentum = 0.9}, schedule);
  DenseShard shard(weights, sgd, false, groups);
  ASSERT_EQ(shard.groups(), 2u);
  EXPECT_EQ(shard.chunks(), 4u);
  EXPECT_EQ(shard.chunks(0), 1u + 3u) << "7 elements; 2 * kChunk + 80";
  EXPECT_EQ(shard.chunks(1), 2u) << "kChunk + 13 elements";
  EXPECT_EQ(shard.elements(0), size - kChunk - 13);
  EXPECT_EQ(shard.elements(1), kChunk + 13);
  const Contribution contribution{a.data(), 0.5f};
  const auto update = [&](std::size_t group, std::uint64_t before, std::uint64_t job) {
    const optimizer::UpdateIndex index(Version{before}, Version{job});
    for (std::size_t c = 0; c < shard.chunks(group); ++c)
      shard.apply_chunk(c, index, {&contribution, 1}, {}, {}, group);
    for (const auto& range : groups[group].ranges) {
      for (auto i = range.begin; i < range.end; ++i) {
        buffer[i] = 0.9 * buffer[i] + 0.5 * static_cast<double>(a[i]);
        w[i] -= 0.1 * (job < 10 ? 1 : 0.5) * buffer[i];
      }
    }
    for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(weights[i], w[i], 1e-6) << "element " << i;
  };
  update(1, 0, 0);
  update(1, 1, 0);
  update(0, 0, 0);
  update(1, 30, 9);
  update(1, 31, 10);
  update(0, 1, 10);
  std::vector<float> copied(size);
  for (std::size_t c = 0; c < shard.chunks(); ++c) shard.copy_chunk(c, std::vector<float*>{copied.data()});
  EXPECT_EQ(copied, weights);
}

TEST(DenseShard, MayHaveNoElementsOfAGroup) {
  std::vector<float> weights(40, 1);
  const OptimizerSet sgd(Options{.kind = Kind::kSgd, .lr = 0.1}, Schedule{});
  DenseShard shard(weights, sgd, false, {{}, {{{0, 40}}}});
  EXPECT_EQ(shard.chunks(0), 0u);
  EXPECT_EQ(shard.elements(0), 0u);
  EXPECT_EQ(shard.chunks(1), 1u);
}

// Every group has the weights of a shard that has its optimizer alone, and the state arrays are shared by
// name.
TEST(DenseShard, UpdatesEachGroupWithItsOwnOptimizer) {
  const std::size_t size = 2 * kChunk + 100;
  const Options sgd{.kind = Kind::kSgd, .lr = 0.1, .momentum = 0.9}, adam{.kind = Kind::kAdam, .lr = 0.01},
      rmsprop{.kind = Kind::kRmsProp, .lr = 0.02, .momentum = 0.5};
  optimizer::Spec spec(sgd);
  spec.groups = {{"a", adam}, {"r", rmsprop}};
  const OptimizerSet all(spec, Schedule{});
  EXPECT_EQ(all.state_names(),
            (std::vector<std::string>{"momentum_buffer", "exp_avg", "exp_avg_sq", "square_avg"}));
  const std::vector<ShardGroup> groups = {
      {{{0, 50}, {kChunk, size}}, 0}, {{{50, 90}}, 1}, {{{90, kChunk}}, 2}};
  const auto initial = random_array(1, size);
  auto weights = initial;
  DenseShard shard(weights, all, false, groups);
  EXPECT_EQ(shard.state().size(), 4u);
  std::vector<std::vector<float>> alone(3, initial);
  const OptimizerSet sets[] = {{sgd, Schedule{}}, {adam, Schedule{}}, {rmsprop, Schedule{}}};
  std::vector<std::unique_ptr<DenseShard>> references;
  for (std::size_t g = 0; g < 3; ++g) references.push_back(std::make_unique<DenseShard>(alone[g], sets[g]));
  for (std::uint64_t step = 0; step < 4; ++step) {
    const auto gradient = random_array(2 + step, size);
    const Contribution contribution{gradient.data(), 0.5f};
    for (std::size_t g = 0; g < 3; ++g) {
      for (std::size_t c = 0; c < shard.chunks(g); ++c)
        shard.apply_chunk(c, Version{step}, {&contribution, 1}, {}, {}, g);
      apply_all(*references[g], step, {contribution}, {});
    }
  }
  for (std::size_t g = 0; g < 3; ++g) {
    for (const auto& range : groups[g].ranges) {
      for (auto i = range.begin; i < range.end; ++i) ASSERT_EQ(weights[i], alone[g][i]) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace capstan::store
