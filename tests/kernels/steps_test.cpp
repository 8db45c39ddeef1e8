#include "capstan/kernels/steps.h"

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "each_target.h"

namespace capstan::kernels {
namespace {

CAPSTAN_FOR_EACH_TARGET(Steps);

constexpr std::size_t kArrays = 4;  // weights and up to three state arrays

// One element's weight and state.
using Element = std::array<double, kArrays>;

struct Rule {
  const char* name;
  std::function<void(std::span<const float>, std::span<float>, float*, float*, float*)> run;
  std::function<void(double, Element&)> reference;
};

const MomentumStep kMomentum{.lr = 0.1f,
                             .weight_decay = 0.01f,
                             .momentum = 0.9f,
                             .intake = 0.75f,
                             .lookahead = 0.9f,
                             .nesterov = false};
const AdamStep kAdam{.lr = 0.05f,
                     .weight_decay = 0.02f,
                     .keep = 0.97f,
                     .beta1 = 0.9f,
                     .intake1 = 0.1f,
                     .beta2 = 0.99f,
                     .intake2 = 0.01f,
                     .root_scale = 1.5f,
                     .eps = 1e-3f};
const RmsPropStep kRmsProp{
    .lr = 0.01f, .weight_decay = 0.03f, .alpha = 0.9f, .intake = 0.1f, .eps = 1e-3f, .momentum = 0.8f};

void rmsprop_reference(double g, Element& e, bool with_buffer, bool with_mean) {
  auto& [w, v, buffer, mean] = e;
  g += 0.03 * w;
  v = 0.9 * v + 0.1 * g * g;
  if (with_mean) mean = 0.9 * mean + 0.1 * g;
  double direction = g / (std::sqrt(v - (with_mean ? mean * mean : 0)) + 1e-3);
  if (with_buffer) direction = buffer = 0.8 * buffer + direction;
  w -= 0.01 * direction;
}

std::vector<Rule> rules() {
  return {
      {"add", [](auto g, auto w, auto...) { add_step(g, w); }, [](double g, Element& e) { e[0] += g; }},
      {"sgd", [](auto g, auto w, auto...) { sgd_step({.lr = 0.1f, .weight_decay = 0.01f}, g, w); },
       [](double g, Element& e) { e[0] -= 0.1 * (g + 0.01 * e[0]); }},
      {"momentum", [](auto g, auto w, auto* a, auto...) { momentum_step(kMomentum, g, w, a); },
       [](double g, Element& e) {
         e[1] = 0.9 * e[1] + 0.75 * (g + 0.01 * e[0]);
         e[0] -= 0.1 * e[1];
       }},
      {"nesterov",
       [](auto g, auto w, auto* a, auto...) {
         auto step = kMomentum;
         step.nesterov = true;
         momentum_step(step, g, w, a);
       },
       [](double g, Element& e) {
         g += 0.01 * e[0];
         e[1] = 0.9 * e[1] + 0.75 * g;
         e[0] -= 0.1 * (g + 0.9 * e[1]);
       }},
      {"adam", [](auto g, auto w, auto* a, auto* b, auto*) { adam_step(kAdam, g, w, a, b); },
       [](double g, Element& e) {
         g += 0.02 * e[0];
         e[1] = 0.9 * e[1] + 0.1 * g;
         e[2] = 0.99 * e[2] + 0.01 * g * g;
         e[0] = 0.97 * e[0] - 0.05 * e[1] / (std::sqrt(e[2]) * 1.5 + 1e-3);
       }},
      {"adagrad",
       [](auto g, auto w, auto* a, auto...) {
         adagrad_step({.lr = 0.1f, .weight_decay = 0.01f, .eps = 1e-3f}, g, w, a);
       },
       [](double g, Element& e) {
         g += 0.01 * e[0];
         e[1] += g * g;
         e[0] -= 0.1 * g / (std::sqrt(e[1]) + 1e-3);
       }},
      {"rmsprop", [](auto g, auto w, auto* a, auto...) { rmsprop_step(kRmsProp, g, w, a, nullptr, nullptr); },
       [](double g, Element& e) { rmsprop_reference(g, e, false, false); }},
      {"rmsprop momentum",
       [](auto g, auto w, auto* a, auto* b, auto*) { rmsprop_step(kRmsProp, g, w, a, b, nullptr); },
       [](double g, Element& e) { rmsprop_reference(g, e, true, false); }},
      {"rmsprop centered",
       [](auto g, auto w, auto* a, auto*, auto* c) { rmsprop_step(kRmsProp, g, w, a, nullptr, c); },
       [](double g, Element& e) { rmsprop_reference(g, e, false, true); }},
      {"rmsprop momentum centered",
       [](auto g, auto w, auto* a, auto* b, auto* c) { rmsprop_step(kRmsProp, g, w, a, b, c); },
       [](double g, Element& e) { rmsprop_reference(g, e, true, true); }},
  };
}

// A gradient, and weights and state of one length. Squares in state are never below the mean's square.
struct Arrays {
  explicit Arrays(std::size_t size) : gradient(size) {
    Random random(size);
    for (auto& a : array) a.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      gradient[i] = draw(random);
      array[0][i] = draw(random);
      array[1][i] = 1 + std::abs(draw(random));
      array[2][i] = 1 + std::abs(draw(random));
      array[3][i] = draw(random) / 2;
    }
  }
  void run(const Rule& rule, std::size_t begin, std::size_t size) {
    rule.run(std::span(gradient).subspan(begin, size), std::span(array[0]).subspan(begin, size),
             array[1].data() + begin, array[2].data() + begin, array[3].data() + begin);
  }
  bool operator==(const Arrays&) const = default;

  std::vector<float> gradient;
  std::array<std::vector<float>, kArrays> array;
};

TEST_P(Steps, EqualPlainArithmetic) {
  for (const auto& rule : rules()) {
    for (std::size_t size : {1, 7, 64, 1003}) {
      Arrays a(size);
      const Arrays old = a;
      a.run(rule, 0, size);
      for (std::size_t i = 0; i < size; ++i) {
        Element e;
        for (std::size_t k = 0; k < kArrays; ++k) e[k] = old.array[k][i];
        rule.reference(old.gradient[i], e);
        for (std::size_t k = 0; k < kArrays; ++k)
          ASSERT_NEAR(a.array[k][i], e[k], 1e-6) << rule.name << ", array " << k << ", element " << i;
      }
    }
  }
}

TEST_P(Steps, SplitsDoNotMatter) {
  constexpr std::size_t kSize = 150;
  for (const auto& rule : rules()) {
    Arrays whole(kSize);
    whole.run(rule, 0, kSize);
    for (std::size_t at = 1; at < kSize; ++at) {
      Arrays cut(kSize);
      cut.run(rule, 0, at);
      cut.run(rule, at, kSize - at);
      ASSERT_TRUE(cut == whole) << rule.name << ", cut at " << at;
    }
  }
}

TEST_P(Steps, AnElementIsTheSameAtEveryPosition) {
  for (const auto& rule : rules()) {
    Arrays one(1);
    const Arrays old = one;
    one.run(rule, 0, 1);
    for (std::size_t size = 2; size <= 40; ++size) {
      Arrays many(size);
      std::fill(many.gradient.begin(), many.gradient.end(), old.gradient[0]);
      for (std::size_t k = 0; k < kArrays; ++k)
        std::fill(many.array[k].begin(), many.array[k].end(), old.array[k][0]);
      many.run(rule, 0, size);
      for (std::size_t k = 0; k < kArrays; ++k)
        for (float x : many.array[k])
          ASSERT_EQ(x, one.array[k][0]) << rule.name << ", " << size << " elements";
    }
  }
}

}  // namespace
}  // namespace capstan::kernels
