#include "capstan/job/worker_watch.h"

#include <gtest/gtest.h>

#include "job/fakes.h"

namespace capstan::job {
namespace {

TEST(WorkerWatch, ReportsEachLossOfARankOnce) {
  RecordedEvents events;
  WorkerWatch watch(2, true, events);
  wire::StatusReport status;
  status.workers.resize(2);
  const auto update = [&](wire::WorkerState state) {
    status.workers[1].state = state;
    watch.update(status);
  };
  update(wire::WorkerState::kLive);
  watch.process_ended(1, "killed");
  update(wire::WorkerState::kLive);  // the servers do not know it yet
  update(wire::WorkerState::kLost);
  EXPECT_EQ(events.messages().size(), 1u);
  update(wire::WorkerState::kLive);  // another process
  update(wire::WorkerState::kLost);
  update(wire::WorkerState::kLost);
  EXPECT_EQ(events.messages().size(), 2u);
  update(wire::WorkerState::kLive);
  watch.process_ended(1, "the first process");
  EXPECT_EQ(events.messages().size(), 2u) << "that is not the one that the servers know";
}

}  // namespace
}  // namespace capstan::job
