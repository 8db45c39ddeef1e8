// The coordinator's state, as checkpoints, the end of the job and status reports need it.

#include "capstan/server/coordinator.h"

namespace capstan::server {
namespace {

wire::WorkerState state_of(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::kAbsent:
      return wire::WorkerState::kAbsent;
    case WorkerPhase::kLeft:
      return wire::WorkerState::kLeft;
    case WorkerPhase::kLost:
      return wire::WorkerState::kLost;
    default:
      return wire::WorkerState::kLive;
  }
}

}  // namespace

std::vector<Version> Coordinator::versions() const {
  std::vector<Version> versions;
  for (const auto& engine : engines_) versions.push_back(engine.version());
  return versions;
}

std::vector<std::uint32_t> Coordinator::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < workers_.size() && !started(); ++i) {
    const auto phase = workers_[{i}].phase;
    if (phase == WorkerPhase::kAbsent || phase == WorkerPhase::kJoined) ranks.push_back(i);
  }
  return ranks;
}

std::vector<std::uint64_t> Coordinator::steps_done() const {
  std::vector<std::uint64_t> steps;
  for (const auto& worker : workers_) steps.push_back(worker.applied.value);
  return steps;
}

wire::StatusReport Coordinator::report() const {
  wire::StatusReport report;
  report.started = started();
  report.finished = finished();
  const auto& engine = engines_[0];
  report.version = engine.version();
  report.dropped_pushes = engine.dropped();
  report.staleness_mean = engine.staleness().mean;
  report.staleness_max = engine.staleness().max;
  report.loss = loss_.mean();
  report.samples = loss_.samples();
  for (std::uint32_t i = 0; i < workers_.size(); ++i) {
    const auto& worker = workers_[{i}];
    auto& row = report.workers.emplace_back(worker.row);
    row.state = state_of(worker.phase);
    row.samples += worker.underway;
    const auto staleness = engine.staleness({i});
    row.staleness_mean = staleness.mean;
    row.staleness_max = staleness.max;
  }
  return report;
}

}  // namespace capstan::server
