#include "capstan/strategy/engine.h"

#include <algorithm>

#include "capstan/base/check.h"

namespace capstan::strategy {

Engine::Engine(std::unique_ptr<Strategy> strategy) : strategy_(std::move(strategy)) {}

LiveWorker* Engine::find(WorkerId worker) {
  const auto it = std::ranges::find(live_, worker, &LiveWorker::id);
  return it == live_.end() ? nullptr : &*it;
}

bool Engine::is_live(WorkerId worker) const {
  return const_cast<Engine*>(this)->find(worker) != nullptr;
}

Staleness Engine::staleness() const {
  if (stale_count_ == 0) return {};
  return {static_cast<double>(stale_sum_) / static_cast<double>(stale_count_), stale_max_};
}

std::vector<Decision> Engine::join(WorkerId worker) {
  CAPSTAN_CHECK(!is_live(worker), "a worker joins once at a time");
  live_.push_back({worker, {}, false});
  std::ranges::sort(live_, {}, &LiveWorker::id);
  waiting_[worker] = {};
  std::vector<Decision> out;
  settle(out);
  return out;
}

std::vector<Decision> Engine::push(const Push& push) {
  auto* worker = find(push.worker);
  CAPSTAN_CHECK(worker && !worker->buffered, "a live worker hands in one gradient at a time");
  std::vector<Decision> out;
  worker->clock = push.clock;
  waiting_[push.worker] = {true, {}};
  if (strategy_->admit(push, view()) == Admission::kTake) {
    worker->buffered = true;
    buffer_.push_back(push);
  } else {
    ++dropped_;
    out.push_back(Drop{push.worker, push.sequence});
  }
  settle(out);
  return out;
}

std::vector<Decision> Engine::pull(WorkerId worker) {
  CAPSTAN_CHECK(is_live(worker), "a live worker pulls");
  waiting_[worker].waits = true;
  std::vector<Decision> out;
  settle(out);
  return out;
}

std::vector<Decision> Engine::remove(WorkerId worker) {
  std::vector<Decision> out;
  if (!is_live(worker)) return out;
  std::erase_if(live_, [&](const LiveWorker& w) { return w.id == worker; });
  std::erase_if(buffer_, [&](const Push& p) {
    if (p.worker != worker) return false;
    ++dropped_;
    out.push_back(Drop{p.worker, p.sequence});
    return true;
  });
  waiting_.erase(worker);
  settle(out);
  return out;
}

std::vector<Decision> Engine::begin() {
  started_ = true;
  std::vector<Decision> out;
  settle(out);
  return out;
}

std::vector<Decision> Engine::limit(Version last) {
  limit_ = last;
  std::vector<Decision> out;
  settle(out);
  return out;
}

void Engine::settle(std::vector<Decision>& out) {
  if (!started_) return;
  while (!exhausted()) {
    const auto count = strategy_->trigger(view());
    if (count == 0) break;
    CAPSTAN_CHECK(count <= buffer_.size(), "a strategy merges no more than is there");
    apply(count, out);
  }
  if (exhausted()) drop_buffered(out);
  for (const auto& worker : live_) {
    auto& waiting = waiting_[worker.id];
    if (!waiting.waits || !strategy_->release(worker, view())) continue;
    waiting.waits = false;
    out.push_back(Release{worker.id, version_, waiting.applied});
  }
}

void Engine::drop_buffered(std::vector<Decision>& out) {
  for (const auto& push : buffer_) {
    ++dropped_;
    out.push_back(Drop{push.worker, push.sequence});
    if (auto* worker = find(push.worker)) worker->buffered = false;
  }
  buffer_.clear();
}

void Engine::apply(std::size_t count, std::vector<Decision>& out) {
  const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Push> merged(buffer_.begin(), end);
  buffer_.erase(buffer_.begin(), end);
  std::ranges::sort(merged, {}, &Push::worker);

  Apply decision{version_, {}, strategy_->rate(merged, version_)};
  for (const auto& push : merged) {
    decision.merged.push_back(
        {push.worker, push.sequence, static_cast<float>(strategy_->weight(push, merged))});
    const auto stale = strategy::staleness(push, version_);
    stale_sum_ += stale;
    stale_max_ = std::max(stale_max_, stale);
    ++stale_count_;
  }
  ++version_.value;
  for (const auto& push : merged) {
    waiting_[push.worker].applied = version_;
    if (auto* worker = find(push.worker)) worker->buffered = false;
  }
  out.push_back(std::move(decision));
}

}  // namespace capstan::strategy
