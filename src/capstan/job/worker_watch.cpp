#include "capstan/job/worker_watch.h"

#include <algorithm>

#include <fmt/format.h>

namespace capstan::job {

using wire::WorkerState;

WorkerWatch::WorkerWatch(std::size_t workers, bool starts_workers, Events& events)
    : starts_workers_(starts_workers),
      events_(events),
      joined_(workers),
      lost_(workers),
      given_up_(workers),
      replaced_(workers) {}

void WorkerWatch::update(const wire::StatusReport& status) {
  live_ = static_cast<std::size_t>(
      std::ranges::count(status.workers, WorkerState::kLive, &wire::WorkerRow::state));
  for (std::size_t rank = 0; rank < status.workers.size(); ++rank) {
    const auto state = status.workers[rank].state;
    if (state == WorkerState::kLive && given_up_[rank]) {
      joined_[rank] = lost_[rank] = given_up_[rank] = false;
      replaced_[rank] = true;
    }
    if (state == WorkerState::kLive && !joined_[rank]) {
      joined_[rank] = true;
      if (!starts_workers_) events_.message(fmt::format("worker {} joined", rank));
    }
    if (state != WorkerState::kLost) continue;
    given_up_[rank] = true;
    lost(rank, joined_[rank] || starts_workers_ ? "the servers lost contact" : "did not join in time");
  }
}

void WorkerWatch::process_ended(std::size_t rank, const std::string& why) {
  if (!replaced_[rank]) lost(rank, why);
}

void WorkerWatch::lost(std::size_t rank, const std::string& why) {
  if (lost_[rank] || quiet_) return;
  lost_[rank] = true;
  events_.message(
      fmt::format("worker {} is lost ({}){}", rank, why, live_ > 0 ? ": training continues without it" : ""));
}

}  // namespace capstan::job
