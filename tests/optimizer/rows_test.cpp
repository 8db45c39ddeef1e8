// Updates of some rows: against PyTorch's optimizers on sparse gradients, and against plain loops.
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "capstan/optimizer/spec.h"
#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;
using Rows = std::vector<std::uint32_t>;

Options options(const std::string& text) {
  return parse_spec(text, defaults).first;
}

// A tensor of rows and columns that begins at `offset` of a layout, and a shard of it.
RowPart part(std::uint32_t rows, std::uint64_t columns, std::uint64_t offset = 0, Range shard = {}) {
  const Range all{offset, offset + rows * columns};
  if (shard.size() == 0) shard = all;
  const auto begin = std::max(all.begin, shard.begin), end = std::min(all.end, shard.end);
  return {0,
          0,
          0,
          columns,
          all,
          shard,
          static_cast<std::uint32_t>((begin - offset) / columns),
          static_cast<std::uint32_t>((end - offset + columns - 1) / columns)};
}

// Weights and state of one shard.
struct Trained {
  Trained(const Options& o, std::vector<float> start)
      : optimizer(o, Schedule{}),
        weights(std::move(start)),
        state(static_cast<std::size_t>(optimizer.state_tensors()), std::vector<float>(weights.size())) {}
  std::vector<float*> state_pointers() {
    std::vector<float*> pointers;
    for (auto& array : state) pointers.push_back(array.data());
    return pointers;
  }
  void update_rows(std::uint64_t before, const RowPart& of, const Rows& rows,
                   const std::vector<RowContribution>& contributions) {
    optimizer.update_rows(Version{before}, of, rows, weights.data(), state_pointers(), contributions);
  }

  Optimizer optimizer;
  std::vector<float> weights;
  std::vector<std::vector<float>> state;
};

TEST(RowUpdates, EqualPyTorchs) {
  std::ifstream file(CAPSTAN_SOURCE_DIR "/tests/reference/rows.json");
  const auto recorded = nlohmann::json::parse(file);
  const std::uint32_t rows = recorded["rows"];
  const std::uint64_t columns = recorded["columns"];
  ASSERT_EQ(recorded["weights"].size(), 5u);
  for (const auto& [name, expected] : recorded["weights"].items()) {
    SCOPED_TRACE(name);
    Trained ours(options(name), recorded["start"]);
    for (std::uint64_t step = 0; step < recorded["steps"].size(); ++step) {
      const Rows touched = recorded["steps"][step]["rows"];
      const std::vector<float> values = recorded["steps"][step]["values"];
      std::vector<float> gradient(rows * columns, NAN);  // of rows that must not be read
      for (std::size_t i = 0; i < touched.size(); ++i)
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * columns), columns,
                    gradient.begin() + static_cast<std::ptrdiff_t>(touched[i] * columns));
      ours.update_rows(step, part(rows, columns), touched, {{gradient.data(), 1, touched}});
    }
    for (std::size_t i = 0; i < ours.weights.size(); ++i) {
      const auto value = expected[i].get<float>();
      ASSERT_NEAR(ours.weights[i], value, 1e-6 * std::max(1.0f, std::abs(value))) << i;
    }
  }
}

// A random job: several workers, each with some rows in each update.
struct Play {
  std::uint32_t rows = *rc::gen::inRange(1, 40);
  std::uint64_t columns = *rc::gen::inRange<std::uint64_t>(1, 70);
  std::size_t workers = *rc::gen::inRange<std::size_t>(1, 6);
  std::size_t updates = *rc::gen::inRange<std::size_t>(1, 6);
  std::size_t size() const { return rows * columns; }

  static float number() { return static_cast<float>(*rc::gen::inRange(-1000, 1000)) / 256; }
  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> out(count);
    for (auto& x : out) x = number();
    return out;
  }
  Rows some_rows() const {
    Rows out;
    for (std::uint32_t r = 0; r < rows; ++r)
      if (*rc::gen::inRange(0, 3) == 0) out.push_back(r);
    return out;
  }
};

// One update: each worker's rows and its gradient, which is zero elsewhere.
struct Pushes {
  explicit Pushes(const Play& play) {
    for (std::size_t w = 0; w < play.workers; ++w) {
      rows.push_back(play.some_rows());
      // With powers of two, sums are exact: otherwise one close to zero has few correct digits.
      factors.push_back(1 / static_cast<float>(1 << *rc::gen::inRange(0, 3)));
      auto& gradient = gradients.emplace_back(play.size());
      for (const auto row : rows.back())
        for (std::uint64_t c = 0; c < play.columns; ++c) gradient[row * play.columns + c] = Play::number();
      touched.insert(rows.back().begin(), rows.back().end());
    }
  }
  std::vector<RowContribution> contributions(std::uint64_t first = 0) const {
    std::vector<RowContribution> out;
    for (std::size_t w = 0; w < rows.size(); ++w)
      out.push_back({gradients[w].data() + first, factors[w], rows[w]});
    return out;
  }
  std::vector<Contribution> dense() const {
    std::vector<Contribution> out;
    for (std::size_t w = 0; w < rows.size(); ++w) out.push_back({gradients[w].data(), factors[w]});
    return out;
  }
  Rows all() const { return {touched.begin(), touched.end()}; }

  std::vector<Rows> rows;
  std::vector<float> factors;
  std::vector<std::vector<float>> gradients;
  std::set<std::uint32_t> touched;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A gradient of zero changes neither weights nor state of these optimizers.
RC_GTEST_PROP(RowUpdatesProperty, EqualADenseUpdateWithZerosElsewhere, ()) {
  const Play play;
  const auto start = Play::numbers(play.size());
  for (const auto* name : {"sgd:lr=0.1", "adagrad:lr=0.1:lr-decay=0.1"}) {
    Trained by_rows(options(name), start), dense(options(name), start);
    for (std::uint64_t update = 0; update < play.updates; ++update) {
      const Pushes pushes(play);
      by_rows.update_rows(update, part(play.rows, play.columns), pushes.all(), pushes.contributions());
      dense.optimizer.update(Version{update}, dense.weights, dense.state_pointers(), pushes.dense());
    }
    RC_ASSERT(same_bits(by_rows.weights, dense.weights));
    for (std::size_t i = 0; i < dense.state.size(); ++i)
      RC_ASSERT(same_bits(by_rows.state[i], dense.state[i]));
  }
}

// The moments of a row change only in updates that have it; the bias correction counts all updates.
RC_GTEST_PROP(RowUpdatesProperty, OfSparseAdamEqualAPlainLoop, ()) {
  const Play play;
  Trained ours(options("sparse-adam:lr=0.1:beta1=0.7:beta2=0.9"), Play::numbers(play.size()));
  std::vector<double> w(ours.weights.begin(), ours.weights.end()), m(w.size()), v(w.size());
  for (std::uint64_t update = 0; update < play.updates; ++update) {
    const Pushes pushes(play);
    ours.update_rows(update, part(play.rows, play.columns), pushes.all(), pushes.contributions());
    const auto t = static_cast<double>(update + 1);
    for (const auto row : pushes.touched) {
      for (auto i = row * play.columns; i < (row + 1) * play.columns; ++i) {
        double g = 0;
        for (std::size_t k = 0; k < play.workers; ++k)
          g += static_cast<double>(pushes.factors[k]) * pushes.gradients[k][i];
        m[i] = 0.7 * m[i] + 0.3 * g;
        v[i] = 0.9 * v[i] + 0.1 * g * g;
        w[i] -=
            0.1 * std::sqrt(1 - std::pow(0.9, t)) / (1 - std::pow(0.7, t)) * m[i] / (std::sqrt(v[i]) + 1e-8);
      }
    }
  }
  for (std::size_t i = 0; i < w.size(); ++i) RC_ASSERT(std::abs(ours.weights[i] - w[i]) < 1e-5);
}

// Two shards that cut a row update it as one does.
RC_GTEST_PROP(RowUpdatesProperty, DoNotDependOnTheSplitOfATensor, ()) {
  const Play play;
  const auto start = Play::numbers(play.size());
  constexpr std::uint64_t kOffset = 16;
  const auto cut = kOffset + *rc::gen::inRange<std::uint64_t>(1, play.size() + 1);
  for (const auto* name : {"sgd:lr=0.1", "adagrad", "sparse-adam"}) {
    Trained whole(options(name), start);
    const auto middle = start.begin() + static_cast<std::ptrdiff_t>(cut - kOffset);
    // The first shard has an element in front of the tensor.
    std::vector<float> front = {1};
    front.insert(front.end(), start.begin(), middle);
    Trained left(options(name), front), right(options(name), {middle, start.end()});
    const auto in_left = part(play.rows, play.columns, kOffset, {kOffset - 1, cut});
    const auto in_right = part(play.rows, play.columns, kOffset, {cut, kOffset + play.size() + 3});
    for (std::uint64_t update = 0; update < play.updates; ++update) {
      const Pushes pushes(play);
      whole.update_rows(update, part(play.rows, play.columns), pushes.all(), pushes.contributions());
      for (auto [shard, of] : {std::pair{&left, &in_left}, std::pair{&right, &in_right}}) {
        if (shard == &right && middle == start.end()) continue;
        auto contributions = pushes.contributions();
        for (auto& c : contributions) {
          c.rows = of->within(c.rows);
          c.gradient += static_cast<std::ptrdiff_t>(of->shard.begin) - static_cast<std::ptrdiff_t>(kOffset);
        }
        const auto all = pushes.all();
        const auto here = of->within(all);
        shard->update_rows(update, *of, {here.begin(), here.end()}, contributions);
      }
    }
    auto both = left.weights;
    RC_ASSERT(both.front() == 1.0f);
    both.erase(both.begin());
    both.insert(both.end(), right.weights.begin(), right.weights.end());
    RC_ASSERT(same_bits(both, whole.weights));
  }
}

const FlatLayout kTwo({{"emb.weight", {10, 4}, true}, {"fc.weight", {4, 4}}});

std::string refusal(const std::string& text) {
  const auto spec = parse_spec(text, defaults);
  try {
    check_rows(spec, kTwo, ParameterGroups(kTwo, {.optimizers = spec.globs()}));
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(RowOptimizers, AreThoseThatLeaveOtherRowsUnchanged) {
  for (const auto* possible : {"sgd", "adagrad", "default=adam,emb*=sparse-adam", "adagrad:lr-decay=0.1",
                               "default=sgd:momentum=0.9,emb*=sgd"})
    EXPECT_EQ(refusal(possible), "");
  const std::pair<const char*, const char*> wrong[] = {
      {"sgd:momentum=0.9", "sgd with momentum"},
      {"sgd:weight-decay=0.1", "sgd with weight decay"},
      {"adagrad:weight-decay=0.1", "adagrad with weight decay"},
      {"adam", "adam"},
      {"default=sgd,emb*=adamw", "adamw"},
      {"rmsprop", "rmsprop"},
      {"none", "none"},
  };
  for (const auto& [text, name] : wrong)
    EXPECT_EQ(refusal(text),
              std::string("--optimizer: emb.weight has sparse gradients, which ") + name +
                  " cannot use; possible are sgd without momentum and weight decay (sgd:momentum=0), adagrad "
                  "without weight decay, and sparse-adam");
  EXPECT_EQ(
      refusal("sparse-adam"),
      "--optimizer: sparse-adam is for tensors with sparse gradients; fc.weight has dense ones: give it "
      "another, as in default=adam,GLOB=sparse-adam");
}

}  // namespace
}  // namespace capstan::optimizer
