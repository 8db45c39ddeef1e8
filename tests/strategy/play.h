#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "capstan/strategy/engine.h"

namespace capstan::strategy {

using Texts = std::vector<std::string>;

// "apply 0: 1#2*0.5" is worker 1's second push with factor 0.5, merged into version 1; "apply 0 at 0.25: …"
// the same at a quarter of the learning rate.
inline std::string text(const Decision& decision) {
  if (const auto* apply = std::get_if<Apply>(&decision)) {
    const auto& rule = apply->rule;
    constexpr const char* kRules[] = {"", " compensated", " adaptively compensated", " moved"};
    auto out = fmt::format("apply {}{}{}{}:", apply->before.value, kRules[static_cast<int>(rule.kind)],
                           rule.kind == UpdateRule::Kind::kStep ? "" : fmt::format(" {:.4g}", rule.strength),
                           rule.rate == 1 ? "" : fmt::format(" at {:.4g}", rule.rate));
    if (apply->accumulated) out += " sum";
    for (const auto& m : apply->merged)
      out += fmt::format(" {}#{}*{:.4g}", m.worker.value, m.sequence.value, m.factor);
    return out;
  }
  if (const auto* accumulate = std::get_if<Accumulate>(&decision)) {
    return fmt::format("{} {}#{}*{:.4g}", accumulate->first ? "begin with" : "add", accumulate->worker.value,
                       accumulate->sequence.value, accumulate->factor);
  }
  if (const auto* drop = std::get_if<Drop>(&decision)) {
    return fmt::format("drop {}#{}", drop->worker.value, drop->sequence.value);
  }
  const auto& release = std::get<Release>(decision);
  return fmt::format("release {} v{} in {}", release.worker.value, release.version.value,
                     release.applied.value);
}

inline Texts texts(const std::vector<Decision>& decisions) {
  Texts out;
  for (const auto& d : decisions) out.push_back(text(d));
  return out;
}

// An engine whose decisions are text, with workers that count their own pushes.
class Play {
 public:
  Play(const std::string& strategy, std::uint32_t workers, std::vector<Switch> later = {})
      : engine_(parse(strategy, workers), std::move(later), [this] { return now_; }) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      EXPECT_TRUE(join(w).empty());
      EXPECT_TRUE(pull(w).empty());
    }
    const auto released = begin();
    EXPECT_EQ(released.size(), workers);
  }

  Texts begin() { return texts(engine_.begin()); }
  Texts join(std::uint32_t w) { return texts(engine_.join({w})); }
  Texts pull(std::uint32_t w) { return texts(engine_.pull({w})); }
  Texts remove(std::uint32_t w) { return texts(engine_.remove({w})); }
  Texts limit(std::uint64_t last) { return texts(engine_.limit({last})); }
  Texts push(std::uint32_t w, std::uint32_t samples = 8, std::uint64_t version = 0) {
    const auto n = ++sequence_[w];
    return texts(engine_.push({{w}, {n}, {n}, {version}, samples, {version}}));
  }
  // Advances the clock, and ticks the engine if its deadline has passed.
  Texts pass(double seconds) {
    now_ += from_seconds(seconds);
    return engine_.deadline() && *engine_.deadline() <= now_ ? texts(engine_.tick()) : Texts{};
  }
  const Engine& engine() const { return engine_; }

 private:
  TimePoint now_{};
  Engine engine_;
  std::map<std::uint32_t, std::uint64_t> sequence_;
};

}  // namespace capstan::strategy
