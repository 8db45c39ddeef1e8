#include "capstan/strategy/strategy.h"

#include <algorithm>

namespace capstan::strategy {

std::uint64_t staleness(const Push& push, Version now) {
  return now.value - std::min(now.value, push.version.value);
}

// Σ n_i g_i / Σ n_i: with equal batches the plain mean.
double Strategy::weight(const Push& push, const Merging& merging) const {
  return merging.samples > 0 ? push.samples / merging.samples : 0;
}

Trigger when_all_have_pushed(const View& view) {
  return {!view.live.empty() && view.buffer.size() >= view.live.size() ? view.live.size() : 0};
}

bool Strategy::release(const LiveWorker& worker, const View&) const {
  return !worker.buffered;
}

}  // namespace capstan::strategy
