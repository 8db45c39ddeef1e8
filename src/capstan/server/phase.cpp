#include "capstan/server/phase.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::server {
namespace {

using enum Phase;

struct Row {
  Phase from;
  std::initializer_list<Phase> to;
};

// A job may end in any phase: workers, leader or followers may be lost before training starts.
const Row kTransitions[] = {
    {kStarting, {kSeekingLeader, kAwaitingModel}},
    {kSeekingLeader, {kLoadingCheckpoint, kAwaitingModel, kEnded}},
    {kLoadingCheckpoint, {kServing, kSavingLast, kAwaitingObservers, kDraining, kEnded}},
    {kAwaitingModel,
     {kLoadingCheckpoint, kAwaitingWeights, kSavingLast, kAwaitingObservers, kDraining, kEnded}},
    {kAwaitingWeights, {kServing, kSavingLast, kAwaitingObservers, kDraining, kEnded}},
    {kServing, {kSavingLast, kAwaitingObservers, kDraining, kEnded}},
    {kSavingLast, {kAwaitingObservers, kDraining, kEnded}},
    {kAwaitingObservers, {kDraining, kEnded}},
    {kDraining, {kEnded}},
    {kEnded, {}},
};

const Row& row(Phase phase) {
  return *std::ranges::find(kTransitions, phase, &Row::from);
}

}  // namespace

bool may_follow(Phase from, Phase to) {
  return std::ranges::find(row(from).to, to) != row(from).to.end();
}

Lifecycle::Lifecycle(std::function<bool()> is_idle, std::function<void(Outcome)> on_end)
    : is_idle_(std::move(is_idle)), on_end_(std::move(on_end)) {}

void Lifecycle::enter(Phase next) {
  if (next == phase_) return;
  CAPSTAN_CHECK(may_follow(phase_, next), "a server's phases follow the table of transitions");
  phase_ = next;
}

void Lifecycle::drain(Outcome outcome) {
  enter(Phase::kDraining);
  pending_outcome_ = outcome;
  settle();
}

void Lifecycle::settle() {
  if (phase_ == Phase::kDraining && is_idle_()) end(pending_outcome_);
}

void Lifecycle::end(Outcome outcome) {
  if (phase_ == Phase::kEnded) return;
  enter(Phase::kEnded);
  outcome_ = outcome;
  on_end_(outcome);
}

}  // namespace capstan::server
