#include "capstan/optimizer/optimizer.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "capstan/base/random.h"

namespace capstan::optimizer {
namespace {

std::vector<float> random_array(Random& random, std::size_t size) {
  std::vector<float> array(size);
  for (auto& x : array) x = static_cast<float>(2 * random.uniform() - 1);
  return array;
}

// Weights, state and several workers' gradients for one optimizer.
struct Fixture {
  Fixture(const Options& options, std::size_t size, std::size_t workers) : optimizer(options, Schedule{}) {
    Random random(size + workers);
    weights = random_array(random, size);
    state.assign(static_cast<std::size_t>(optimizer.state_tensors()), std::vector<float>(size));
    for (std::size_t k = 0; k < workers; ++k) {
      gradients.push_back(random_array(random, size));
      factors.push_back(1 / static_cast<float>(k + 1));
    }
  }
  void update(std::uint64_t version, std::size_t begin, std::size_t size) {
    std::vector<float*> parts;
    for (auto& s : state) parts.push_back(s.data() + begin);
    std::vector<Contribution> contributions;
    for (std::size_t k = 0; k < gradients.size(); ++k)
      contributions.push_back({gradients[k].data() + begin, factors[k]});
    optimizer.update(Version{version}, std::span(weights).subspan(begin, size), parts, contributions);
  }

  Optimizer optimizer;
  std::vector<float> weights;
  std::vector<std::vector<float>> state, gradients;
  std::vector<float> factors;
};

std::vector<Options> every_kind() {
  return {{.kind = Kind::kNone},
          {.kind = Kind::kSgd, .weight_decay = 0.01},
          {.kind = Kind::kSgd, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.2},
          {.kind = Kind::kSgd, .momentum = 0.9, .nesterov = true},
          {.kind = Kind::kAdam, .weight_decay = 0.01},
          {.kind = Kind::kAdamW, .weight_decay = 0.01},
          {.kind = Kind::kAdagrad, .lr_decay = 0.1},
          {.kind = Kind::kRmsProp},
          {.kind = Kind::kRmsProp, .momentum = 0.9, .centered = true}};
}

TEST(Optimizer, NoneAddsTheMergedContributions) {
  for (std::size_t workers : {1, 2, 4, 9}) {
    Fixture f({.kind = Kind::kNone}, 3001, workers);
    const auto old = f.weights;
    f.update(5, 0, old.size());
    for (std::size_t i = 0; i < old.size(); ++i) {
      double expected = old[i];
      for (std::size_t k = 0; k < workers; ++k)
        expected += static_cast<double>(f.factors[k]) * static_cast<double>(f.gradients[k][i]);
      ASSERT_NEAR(f.weights[i], expected, 1e-6) << workers << " workers, element " << i;
    }
  }
}

TEST(Optimizer, SgdWithMomentumEqualsPlainArithmetic) {
  Fixture f({.kind = Kind::kSgd, .lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.25}, 2500,
            4);
  std::vector<double> w(f.weights.begin(), f.weights.end()), buffer(w.size());
  for (std::uint64_t v = 0; v < 5; ++v) {
    f.update(v, 0, w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = 0.01 * w[i];
      for (std::size_t k = 0; k < 4; ++k)
        g += static_cast<double>(f.factors[k]) * static_cast<double>(f.gradients[k][i]);
      buffer[i] = v == 0 ? g : 0.9 * buffer[i] + 0.75 * g;
      w[i] -= 0.1 * buffer[i];
      ASSERT_NEAR(f.weights[i], w[i], 1e-6) << "version " << v << ", element " << i;
    }
  }
}

TEST(Optimizer, SplitsDoNotMatter) {
  constexpr std::size_t kSize = 5000;
  for (const auto& options : every_kind()) {
    for (std::size_t workers : {1, 2, 4, 5}) {
      Fixture whole(options, kSize, workers), cut(options, kSize, workers);
      Random random(workers);
      for (std::uint64_t v = 0; v < 3; ++v) {
        whole.update(v, 0, kSize);
        for (std::size_t begin = 0, size = 0; begin < kSize; begin += size) {
          size = std::min(kSize - begin, 1 + random.below(2000));
          cut.update(v, begin, size);
        }
        ASSERT_EQ(cut.weights, whole.weights) << name(options.kind) << ", " << workers << " workers";
        ASSERT_EQ(cut.state, whole.state) << name(options.kind) << ", " << workers << " workers";
      }
    }
  }
}

TEST(Optimizer, AnElementIsTheSameAtEveryPosition) {
  for (const auto& options : every_kind()) {
    Fixture f(options, 2100, 3);
    std::fill(f.weights.begin(), f.weights.end(), 0.3f);
    for (auto& g : f.gradients) std::fill(g.begin(), g.end(), g[0]);
    for (std::uint64_t v = 0; v < 3; ++v) f.update(v, 0, f.weights.size());
    for (float w : f.weights) ASSERT_EQ(w, f.weights[0]) << name(options.kind);
  }
}

TEST(Optimizer, AnEmptyBlockIsNoWork) {
  Fixture f({.kind = Kind::kAdam}, 10, 2);
  const auto old = f.weights;
  f.update(0, 5, 0);
  EXPECT_EQ(f.weights, old);
}

}  // namespace
}  // namespace capstan::optimizer
