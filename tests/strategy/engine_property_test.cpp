// Random jobs: every push is settled once, and no worker waits forever.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "capstan/strategy/engine.h"

namespace capstan::strategy {
namespace {

// More cases than the library's default of 100, unless RC_PARAMS is set.
[[maybe_unused]] const int kMoreCases = ::setenv("RC_PARAMS", "max_success=2000", 0);

enum class Kind { kSync, kAsync, kBatch };

struct Setup {
  Kind kind;
  std::uint32_t workers;
  std::uint32_t k;
  std::string spelling() const {
    if (kind == Kind::kSync) return "sync";
    return kind == Kind::kAsync ? "async" : "batch:" + std::to_string(k);
  }
};

Setup any_setup() {
  const auto workers = *rc::gen::inRange<std::uint32_t>(1, 6);
  return {*rc::gen::element(Kind::kSync, Kind::kAsync, Kind::kBatch), workers,
          *rc::gen::inRange<std::uint32_t>(1, workers + 1)};
}

// The state of a job, tracked from events and decisions only.
class Books {
 public:
  explicit Books(const Setup& setup) : setup_(setup), engine_(parse(setup.spelling(), setup.workers)) {}

  bool is_live(std::uint32_t w) const { return live_.contains(w); }
  bool waits(std::uint32_t w) const { return waits_.contains(w); }
  bool has_begun() const { return begun_; }
  Version pulled(std::uint32_t w) const { return pulled_.at(w); }

  void join(std::uint32_t w) {
    live_.insert(w);
    newest_.erase(w);
    take(engine_.join({w}));
  }
  void pull(std::uint32_t w) {
    waits_.insert(w);
    take(engine_.pull({w}));
  }
  void push(std::uint32_t w, std::uint32_t samples) {
    const PushKey key{w, ++pushes_};
    newest_[w] = key;
    waits_.insert(w);
    buffer_.push_back({key, samples});
    take(engine_.push({{w}, {key.second}, {pushes_}, pulled_.at(w), samples, pulled_.at(w)}));
  }
  void remove(std::uint32_t w) {
    live_.erase(w);
    waits_.erase(w);
    take(engine_.remove({w}));
    for (const auto& waiting : buffer_) RC_ASSERT(waiting.key.first != w);
  }
  void begin() {
    begun_ = true;
    take(engine_.begin());
  }
  void limit(std::uint64_t beyond) {
    limit_ = version_ + beyond;
    take(engine_.limit({limit_}));
  }
  void settle_all() {
    for (const auto w : std::set<std::uint32_t>(live_)) {
      if (!waits(w)) push(w, 1);
    }
  }
  // If all live workers have pushed, at least one must be released.
  bool some_worker_can_continue() const { return live_.empty() || waits_.size() < live_.size(); }
  std::uint64_t max_staleness() const { return engine_.staleness().max; }
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t dropped_by_engine() const { return engine_.dropped(); }

 private:
  using PushKey = std::pair<std::uint32_t, std::uint64_t>;
  struct Buffered {
    PushKey key;
    std::uint32_t samples;
  };

  std::size_t threshold() const {
    if (setup_.kind == Kind::kAsync) return 1;
    return setup_.kind == Kind::kSync ? live_.size() : std::min<std::size_t>(setup_.k, live_.size());
  }

  void take(const std::vector<Decision>& decisions) {
    for (const auto& d : decisions) std::visit([this](const auto& x) { check(x); }, d);
    if (!begun_) return;
    // No due decision is left.
    if (version_ >= limit_) RC_ASSERT(buffer_.empty());
    if (!live_.empty()) RC_ASSERT(buffer_.empty() || buffer_.size() < threshold());
    for (const auto w : waits_) RC_ASSERT(is_buffered(w));
    RC_ASSERT(engine_.version().value == version_);
  }

  void check(const Apply& apply) {
    RC_ASSERT(begun_);
    RC_ASSERT(version_ < limit_);
    RC_ASSERT(apply.before.value == version_++);
    RC_ASSERT(apply.merged.size() == threshold());
    double samples = 0;
    std::map<std::uint32_t, Buffered> oldest;  // by rank
    for (std::size_t i = 0; i < apply.merged.size(); ++i) {
      RC_ASSERT(i < buffer_.size());
      oldest.emplace(buffer_[i].key.first, buffer_[i]);
      samples += buffer_[i].samples;
    }
    auto expected = oldest.begin();
    for (const auto& m : apply.merged) {
      RC_ASSERT(expected != oldest.end());
      const auto& push = (expected++)->second;
      RC_ASSERT(m.worker.value == push.key.first);
      RC_ASSERT(m.sequence.value == push.key.second);
      const double factor = setup_.kind == Kind::kAsync ? 1 : samples > 0 ? push.samples / samples : 0;
      RC_ASSERT(m.factor == static_cast<float>(factor));
      settle(push.key, version_);
    }
  }
  void check(const Accumulate&) { RC_FAIL("these strategies accumulate nothing"); }
  void check(const Drop& drop) {
    ++dropped_;
    settle({drop.worker.value, drop.sequence.value}, 0);
  }
  void check(const Release& release) {
    const auto w = release.worker.value;
    RC_ASSERT(begun_);
    RC_ASSERT(waits_.erase(w) == 1u);
    RC_ASSERT(!is_buffered(w));
    RC_ASSERT(release.version.value == version_);
    RC_ASSERT(release.applied.value == (newest_.contains(w) ? settled_.at(newest_[w]) : 0));
    pulled_[w] = release.version;
  }

  void settle(const PushKey& key, std::uint64_t version) {
    RC_ASSERT(std::erase_if(buffer_, [&](const Buffered& b) { return b.key == key; }) == 1u);
    RC_ASSERT(settled_.emplace(key, version).second);
  }
  bool is_buffered(std::uint32_t w) const {
    return std::ranges::any_of(buffer_, [&](const Buffered& b) { return b.key.first == w; });
  }

  const Setup setup_;
  Engine engine_;
  bool begun_ = false;
  std::uint64_t version_ = 0, limit_ = std::numeric_limits<std::uint64_t>::max(), pushes_ = 0, dropped_ = 0;
  std::set<std::uint32_t> live_, waits_;
  std::map<std::uint32_t, Version> pulled_;
  std::map<std::uint32_t, PushKey> newest_;
  std::vector<Buffered> buffer_;
  std::map<PushKey, std::uint64_t> settled_;
};

// One random event, if it is possible.
void happen(Books& books, const Setup& setup) {
  const auto w = *rc::gen::inRange<std::uint32_t>(0, setup.workers);
  const auto what = *rc::gen::weightedElement<int>({{12, 0}, {3, 1}, {2, 2}, {1, 3}, {2, 4}});
  if (!books.is_live(w)) {
    if (what > 1) return;
    books.join(w);
    books.pull(w);
  } else if (what == 0 && books.has_begun() && !books.waits(w)) {
    books.push(w, *rc::gen::inRange<std::uint32_t>(0, 5));
  } else if (what == 1) {
    books.pull(w);
  } else if (what == 2) {
    books.remove(w);
  } else if (what == 3) {
    books.limit(*rc::gen::inRange<std::uint64_t>(0, 8));
  } else if (what == 4 && !books.has_begun()) {
    books.begin();
  }
}

RC_GTEST_PROP(EngineProperty, EveryPushIsSettledOnceAndEveryWorkerIsAnswered, ()) {
  const auto setup = any_setup();
  RC_LOG() << setup.spelling() << " with " << setup.workers << " workers\n";
  Books books(setup);
  const auto events = *rc::gen::inRange(0, 120);
  for (int i = 0; i < events; ++i) happen(books, setup);
  if (!books.has_begun()) books.begin();
  books.settle_all();
  RC_ASSERT(books.some_worker_can_continue());
  RC_ASSERT(books.dropped() == books.dropped_by_engine());
  if (setup.kind == Kind::kSync) RC_ASSERT(books.max_staleness() == 0u);
}

}  // namespace
}  // namespace capstan::strategy
