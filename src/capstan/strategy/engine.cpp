#include "capstan/strategy/engine.h"

#include <algorithm>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::strategy {

void Engine::Tally::add(std::uint64_t stale) {
  ++count;
  sum += stale;
  max = std::max(max, stale);
}

Staleness Engine::Tally::result() const {
  return count == 0 ? Staleness{} : Staleness{static_cast<double>(sum) / static_cast<double>(count), max};
}

Engine::Engine(std::shared_ptr<const Strategy> strategy, std::vector<Switch> later, Now now)
    : strategy_(std::move(strategy)), later_(std::move(later)), now_(std::move(now)) {}

std::vector<Engine> make_engines(const StrategySpec& spec, const ParameterGroups& groups,
                                 const Engine::Now& now) {
  std::vector<Engine> engines;
  for (const auto& group : groups) {
    if (group.strategy == 0) {
      engines.emplace_back(spec.first, spec.later, now);
    } else {
      engines.emplace_back(spec.groups[group.strategy - 1].strategy, std::vector<Switch>(), now);
    }
  }
  return engines;
}

LiveWorker* Engine::find(WorkerId worker) {
  const auto it = std::ranges::lower_bound(live_, worker, {}, &LiveWorker::id);
  return it == live_.end() || it->id != worker ? nullptr : &*it;
}

bool Engine::is_live(WorkerId worker) const {
  return const_cast<Engine*>(this)->find(worker) != nullptr;
}

Staleness Engine::staleness() const {
  return staleness_.result();
}

Staleness Engine::staleness(WorkerId worker) const {
  const auto found = staleness_of_.find(worker);
  return found == staleness_of_.end() ? Staleness{} : found->second.result();
}

void Engine::resume(Version version) {
  version_ = version;
  while (!later_.empty() && later_.front().from <= version_) {
    strategy_ = std::move(later_.front().strategy);
    later_.erase(later_.begin());
  }
}

void Engine::count_pushes(std::optional<PushCount> from, std::optional<PushCount> to) {
  const auto before = slowest();
  if (to) ++push_counts_[*to];
  if (from && --push_counts_.at(*from) == 0) push_counts_.erase(*from);
  if (slowest() != before) ask_all_ = true;
}

void Engine::count_push(LiveWorker& worker) {
  const auto before = worker.pushes;
  ++worker.pushes.value;
  count_pushes(before, worker.pushes);
}

std::vector<Decision> Engine::join(WorkerId worker) {
  CAPSTAN_CHECK(!is_live(worker), "the worker is not a member yet");
  const auto pushes = slowest();
  live_.insert(std::ranges::lower_bound(live_, worker, {}, &LiveWorker::id), {worker, pushes, false});
  count_pushes({}, pushes);
  waiting_[worker] = {};
  ask_all_ = true;
  return tick();
}

std::vector<Decision> Engine::push(const Push& push) {
  auto* worker = find(push.worker);
  CAPSTAN_CHECK(worker && !worker->buffered, "a live worker has at most one push in the buffer");
  std::vector<Decision> out;
  if (push.ends_step) count_push(*worker);
  waiting_[push.worker] = {true, {}};
  ask_.push_back(push.worker);
  const auto admission = strategy_->admit(push, view());
  if (admission == Admission::kDrop) {
    ++dropped_;
    out.push_back(Drop{push.worker, push.sequence});
  } else {
    auto& taken = buffer_.emplace_back(push);
    taken.arrived = now_();
    taken.accumulated = admission == Admission::kAccumulate;
    worker->buffered = !taken.accumulated;
    if (taken.accumulated) {
      const auto factor = strategy_->weight(taken, {1, static_cast<double>(taken.samples), version_});
      out.push_back(Accumulate{push.worker, push.sequence, static_cast<float>(factor), accumulated_++ == 0});
      waiting_[push.worker].applied = {version_.value + 1};
    }
  }
  settle(out);
  return out;
}

std::vector<Decision> Engine::pull(WorkerId worker) {
  CAPSTAN_CHECK(is_live(worker), "only a live worker pulls");
  waiting_[worker].waits = true;
  ask_.push_back(worker);
  return tick();
}

std::vector<Decision> Engine::complete_step(WorkerId worker) {
  auto* const live = find(worker);
  CAPSTAN_CHECK(live, "only a live worker completes a step");
  count_push(*live);
  return tick();
}

std::vector<Decision> Engine::apply_buffered() {
  std::vector<Decision> out;
  if (!buffer_.empty()) apply(buffer_.size(), out);
  settle(out);
  return out;
}

std::vector<Decision> Engine::remove(WorkerId worker) {
  std::vector<Decision> out;
  const auto* leaving = find(worker);
  if (!leaving) return out;
  count_pushes(leaving->pushes, {});
  std::erase_if(live_, [&](const LiveWorker& w) { return w.id == worker; });
  ask_all_ = true;
  std::erase_if(buffer_, [&](const Push& p) {
    if (p.worker != worker || p.accumulated) return false;
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
  return tick();
}

std::vector<Decision> Engine::limit(Version last) {
  limit_ = last;
  return tick();
}

std::vector<Decision> Engine::tick() {
  std::vector<Decision> out;
  settle(out);
  return out;
}

// Makes one update or switches to the next strategy; false if neither is due.
bool Engine::apply_what_is_due(std::vector<Decision>& out) {
  deadline_.reset();
  if (exhausted()) return false;
  if (!later_.empty() && later_.front().from <= version_) {
    if (!buffer_.empty()) {
      apply(buffer_.size(), out);
    } else {
      strategy_ = std::move(later_.front().strategy);
      later_.erase(later_.begin());
      ask_all_ = true;
    }
    return true;
  }
  const auto trigger = strategy_->trigger(view());
  deadline_ = trigger.at;
  if (trigger.count == 0) return false;
  CAPSTAN_CHECK(trigger.count <= buffer_.size(), "a strategy merges only buffered pushes");
  apply(trigger.count, out);
  return true;
}

void Engine::settle(std::vector<Decision>& out) {
  if (!started_) return;
  while (apply_what_is_due(out)) {
  }
  if (exhausted()) {
    drop_buffered(out);
    ask_all_ = true;
  }
  release(out);
}

// In rank order.
void Engine::release(std::vector<Decision>& out) {
  const auto ask = [&](const LiveWorker& worker) {
    auto& waiting = waiting_[worker.id];
    if (!waiting.waits || !(exhausted() || strategy_->release(worker, view()))) return;
    waiting.waits = false;
    out.push_back(Release{worker.id, version_, waiting.applied});
  };
  if (std::exchange(ask_all_, false)) {
    std::ranges::for_each(live_, ask);
  } else {
    std::ranges::sort(ask_);
    for (const auto id : ask_) {
      if (const auto* worker = find(id)) ask(*worker);
    }
  }
  ask_.clear();
}

void Engine::drop_buffered(std::vector<Decision>& out) {
  dropped_ += buffer_.size();
  for (const auto& push : buffer_) {
    if (push.accumulated) continue;  // no worker waits for it
    out.push_back(Drop{push.worker, push.sequence});
    if (auto* worker = find(push.worker)) worker->buffered = false;
  }
  buffer_.clear();
  accumulated_ = 0;
}

void Engine::apply(std::size_t count, std::vector<Decision>& out) {
  const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Push> merged(buffer_.begin(), end);
  buffer_.erase(buffer_.begin(), end);
  if (count > 1) std::ranges::stable_sort(merged, {}, &Push::worker);  // allocates

  Merging merging{merged.size(), 0, version_};
  for (const auto& push : merged) merging.samples += push.samples;
  Apply decision{version_, {}, false, strategy_->apply(merged, version_)};
  for (const auto& push : merged) {
    const auto stale = strategy::staleness(push, version_);
    staleness_.add(stale);
    staleness_of_[push.worker].add(stale);
    if (push.accumulated) {
      decision.accumulated = true;
      --accumulated_;
      continue;
    }
    const auto factor = strategy_->weight(push, merging);
    decision.merged.push_back({push.worker, push.sequence, static_cast<float>(factor)});
  }
  ++version_.value;
  for (const auto& push : merged) {
    if (push.accumulated) continue;
    waiting_[push.worker].applied = version_;
    if (auto* worker = find(push.worker)) worker->buffered = false;
    ask_.push_back(push.worker);
  }
  out.push_back(std::move(decision));
}

}  // namespace capstan::strategy
