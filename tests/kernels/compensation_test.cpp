#include "capstan/kernels/compensation.h"

#include <cmath>
#include <vector>

#include "each_target.h"

namespace capstan::kernels {
namespace {

CAPSTAN_FOR_EACH_TARGET(Compensation);

struct Arrays {
  explicit Arrays(std::size_t size) : g(size), w(size), base(size), square(size) {
    Random random(size);
    for (std::size_t i = 0; i < size; ++i) {
      g[i] = draw(random), w[i] = draw(random), base[i] = draw(random);
      square[i] = static_cast<float>(random.uniform());
    }
  }
  std::vector<float> g, w, base, square;
};

TEST_P(Compensation, EqualsPlainArithmetic) {
  for (std::size_t size : {1, 7, 16, 33, 1000}) {
    const Arrays a(size);
    std::vector<float> out(size, -9);
    compensate(0.3f, a.g, a.w.data(), a.base.data(), out.data());
    for (std::size_t i = 0; i < size; ++i) {
      const double g = a.g[i];
      ASSERT_NEAR(out[i], g + 0.3 * g * g * (static_cast<double>(a.w[i]) - a.base[i]), 1e-6) << i;
    }
  }
}

TEST_P(Compensation, AdaptsToTheMeanOfSquares) {
  for (std::size_t size : {1, 7, 16, 33, 1000}) {
    Arrays a(size);
    const auto before = a.square;
    std::vector<float> out(size, -9);
    compensate_adaptive(0.3f, a.g, a.w.data(), a.base.data(), a.square.data(), out.data());
    for (std::size_t i = 0; i < size; ++i) {
      const double g = a.g[i], mean = 0.95 * static_cast<double>(before[i]) + 0.05 * g * g;
      const double moved = static_cast<double>(a.w[i]) - a.base[i];
      ASSERT_NEAR(a.square[i], mean, 1e-6) << i;
      ASSERT_NEAR(out[i], g + 0.3 / std::sqrt(mean + 1e-7) * g * g * moved, 1e-5) << i;
    }
  }
}

// If the weights have not changed, the gradient keeps its bits.
TEST_P(Compensation, WithoutDelayChangesNothing) {
  Arrays a(77);
  std::vector<float> out(77);
  compensate(5, a.g, a.w.data(), a.w.data(), out.data());
  EXPECT_EQ(out, a.g);
}

}  // namespace
}  // namespace capstan::kernels
