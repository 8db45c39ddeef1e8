// The leader's decisions event by event: no loop, no socket, no thread.

#include "capstan/server/coordinator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

constexpr TimePoint kNow{};

// "apply 0: 0#1 1#1", "deliver 0 v1", "observer 0 v1 stop", "ask 0", "ordered".
std::string text(const Action& action) {
  if (const auto* ask = std::get_if<AskInitialWeights>(&action))
    return fmt::format("ask {}", ask->worker.value);
  if (std::holds_alternative<UpdatesOrdered>(action)) return "ordered";
  const auto& order = std::get<Order>(action);
  if (const auto* apply = std::get_if<wire::ApplyOrder>(&order)) {
    auto out = fmt::format("apply {}:", apply->before.value);
    for (const auto& c : apply->contributions) out += fmt::format(" {}#{}", c.worker.value, c.sequence.value);
    return out;
  }
  if (const auto* drop = std::get_if<wire::DropOrder>(&order))
    return fmt::format("drop {}#{}", drop->worker.value, drop->sequence.value);
  if (const auto* accumulate = std::get_if<wire::AccumulateOrder>(&order))
    return fmt::format("accumulate {}", accumulate->contribution.worker.value);
  const auto& deliver = std::get<wire::DeliverOrder>(order);
  return fmt::format("{} {} v{}{}", deliver.member.role == wire::Role::kWorker ? "deliver" : "observer",
                     deliver.member.index, deliver.reply.version.value, deliver.reply.stop ? " stop" : "");
}

Texts texts(const Actions& actions) {
  Texts out;
  for (const auto& action : actions) out.push_back(text(action));
  return out;
}

wire::Member worker(std::uint32_t rank) {
  return {wire::Role::kWorker, rank};
}

// A coordinator and its events.
class Events {
 public:
  explicit Events(const Coordinator::Options& options) : coordinator(options) {}

  Texts join(std::uint32_t rank, std::uint64_t incarnation = 1) {
    EXPECT_TRUE(coordinator.admit(wire::Role::kWorker, rank, {incarnation}));
    return texts(coordinator.pull(worker(rank), {900, {}}, kNow));
  }
  Texts initialized(std::uint32_t server = 0) { return texts(coordinator.initialized({server}, kNow)); }
  Texts push(std::uint32_t rank, std::uint64_t sequence, std::uint64_t incarnation = 1) {
    wire::Push p;
    p.worker = {rank};
    p.incarnation = {incarnation};
    p.sequence = {sequence};
    p.steps = {sequence};
    p.samples = 8;
    return texts(coordinator.pushed(p, kNow));
  }
  Texts staged(std::uint32_t server, std::uint32_t rank, std::uint64_t sequence,
               std::uint64_t incarnation = 1) {
    return texts(coordinator.staged({server}, {rank}, {incarnation}, {sequence}, kNow));
  }
  Texts lose(std::uint32_t rank) { return texts(coordinator.member_ended(worker(rank), true, kNow)); }
  Texts leave(std::uint32_t rank) { return texts(coordinator.member_ended(worker(rank), false, kNow)); }

  Coordinator coordinator;
};

TEST(Start, WaitsForWeightsAndForEveryWorker) {
  Events job({"sync", 2, 1});
  EXPECT_THAT(job.join(1), ElementsAre("ask 1")) << "the first that is ready sends the weights";
  EXPECT_THAT(job.initialized(), IsEmpty());
  EXPECT_FALSE(job.coordinator.started());
  EXPECT_THAT(job.coordinator.missing(), ElementsAre(0));
  EXPECT_THAT(job.join(0), ElementsAre("deliver 0 v0", "deliver 1 v0"));
  EXPECT_TRUE(job.coordinator.started());
  EXPECT_THAT(job.coordinator.missing(), IsEmpty());
}

TEST(Start, AsksAnotherWorkerWhereTheFirstIsLost) {
  Events job({"sync", 2, 1});
  EXPECT_THAT(job.join(0), ElementsAre("ask 0"));
  EXPECT_THAT(job.join(1), IsEmpty());
  EXPECT_THAT(job.lose(0), ElementsAre("ask 1"));
  EXPECT_THAT(job.initialized(), ElementsAre("deliver 1 v0"));
}

TEST(Start, AsksAgainWhereTheQuestionMayBeLost) {
  Events job({"sync", 1, 1});
  EXPECT_THAT(job.join(0), ElementsAre("ask 0"));
  EXPECT_THAT(texts(job.coordinator.pull(worker(0), {901, {}}, kNow)), ElementsAre("ask 0"));
}

TEST(Start, DismissesWorkersThatNeverJoined) {
  Events job({"sync", 2, 1});
  EXPECT_THAT(job.join(0), ElementsAre("ask 0"));
  EXPECT_THAT(job.leave(1), IsEmpty());
  EXPECT_THAT(job.leave(0), IsEmpty());
  EXPECT_TRUE(job.coordinator.finished());
  EXPECT_FALSE(job.coordinator.all_lost());
}

// A checkpoint does not have the servers' sum, so a run that resumes must repeat what is only in the sum.
TEST(Accumulated, PushesCountAsDoneOnceAnUpdateAppliesThem) {
  Events job({"fedbuff:3:1", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  EXPECT_THAT(job.push(0, 1), ElementsAre("accumulate 0", "deliver 0 v0"));
  EXPECT_THAT(job.push(1, 1), ElementsAre("accumulate 1", "deliver 1 v0"));
  EXPECT_THAT(job.coordinator.steps_done(), ElementsAre(0, 0));
  EXPECT_THAT(job.coordinator.marks(), IsEmpty());
  EXPECT_THAT(job.push(0, 2), ElementsAre("accumulate 0", "apply 0:", "deliver 0 v1", "ordered"));
  EXPECT_THAT(job.coordinator.steps_done(), ElementsAre(2, 1));
  ASSERT_EQ(job.coordinator.marks().size(), 2u);
  EXPECT_EQ(job.coordinator.marks()[0].sequence, Sequence{2});
  EXPECT_EQ(job.coordinator.report().samples, 24u);
  (void)job.push(1, 2);
  (void)job.coordinator.stop(kNow);
  EXPECT_THAT(job.coordinator.steps_done(), ElementsAre(2, 1)) << "the sum that is dropped at the end";
  EXPECT_EQ(job.coordinator.marks()[1].sequence, Sequence{1});
  EXPECT_EQ(job.coordinator.report().samples, 24u);
}

TEST(Accumulated, PushesOfALostWorkerAreDoneForItsSuccessor) {
  Events job({"fedbuff:2:1", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  (void)job.push(0, 1);
  (void)job.lose(0);
  (void)job.join(0, 2);
  (void)job.push(1, 1);
  EXPECT_THAT(job.coordinator.steps_done(), ElementsAre(1, 1));
  ASSERT_EQ(job.coordinator.marks().size(), 1u) << "the new incarnation has not pushed";
  EXPECT_EQ(job.coordinator.marks()[0].worker, WorkerId{1});
}

TEST(Start, WithoutWorkersThatDoNotCome) {
  Events job({"sync", 3, 1});
  EXPECT_THAT(job.join(0), ElementsAre("ask 0"));
  EXPECT_THAT(job.initialized(), IsEmpty());
  EXPECT_THAT(job.lose(1), IsEmpty());
  EXPECT_THAT(job.lose(2), ElementsAre("deliver 0 v0"));
  EXPECT_THAT(job.push(0, 1), ElementsAre("apply 0: 0#1", "deliver 0 v1", "ordered"));
}

TEST(Start, AResumedJobAsksForNoWeights) {
  Events job({"sync", 1, 1});
  job.coordinator.resume({{40}}, {});
  EXPECT_THAT(job.join(0), IsEmpty());
  EXPECT_THAT(job.initialized(), ElementsAre("deliver 0 v40"));
  EXPECT_THAT(job.push(0, 1), ElementsAre("apply 40: 0#1", "deliver 0 v41", "ordered"));
}

TEST(Push, CountsOnceEveryServerHoldsIt) {
  Events job({"async", 1, 2});
  (void)job.join(0);
  EXPECT_THAT(job.initialized(0), IsEmpty());
  EXPECT_THAT(job.initialized(1), ElementsAre("deliver 0 v0"));
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(job.staged(1, 0, 1, 99), IsEmpty()) << "of another incarnation";
  EXPECT_THAT(job.staged(1, 0, 1), ElementsAre("apply 0: 0#1", "deliver 0 v1", "ordered"));
  EXPECT_THAT(job.staged(1, 0, 2), IsEmpty()) << "the follower may be first";
  EXPECT_THAT(job.push(0, 2), ElementsAre("apply 1: 0#2", "deliver 0 v2", "ordered"));
}

TEST(Push, ThatIsSentAgainCountsOnce) {
  Events job({"async", 1, 1});
  (void)job.join(0);
  (void)job.initialized();
  EXPECT_EQ(job.push(0, 1).size(), 3u);
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(texts(job.coordinator.pull(worker(0), {902, {}}, kNow)), ElementsAre("deliver 0 v1"))
      << "its answer was lost";
  EXPECT_EQ(job.coordinator.pushes(), std::vector<std::uint64_t>{1});
}

TEST(Push, OfALostWorkerIsDroppedAndTheOthersContinue) {
  Events job({"sync", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(job.lose(0), ElementsAre("drop 0#1"));
  EXPECT_THAT(job.push(1, 1), ElementsAre("apply 0: 1#1", "deliver 1 v1", "ordered"));
  EXPECT_THAT(job.join(0, 2), ElementsAre("deliver 0 v1")) << "a new process joins the running job";
  EXPECT_EQ(job.coordinator.steps_done(), (std::vector<std::uint64_t>{0, 1}));
}

TEST(Push, BeforeTheLimitIsTheLast) {
  Events job({"async", 1, 1, 2});
  (void)job.join(0);
  (void)job.initialized();
  EXPECT_THAT(job.push(0, 1), ElementsAre("apply 0: 0#1", "deliver 0 v1", "ordered"));
  EXPECT_THAT(job.push(0, 2), ElementsAre("apply 1: 0#2", "deliver 0 v2 stop", "ordered"));
  EXPECT_THAT(job.push(0, 3), ElementsAre("drop 0#3", "deliver 0 v2 stop"));
}

TEST(Observers, GetTheVersionTheyAskFor) {
  Events job({"async", 1, 1});
  const wire::Member observer{wire::Role::kObserver, 0};
  EXPECT_EQ(*job.coordinator.admit(wire::Role::kObserver, {}, {}), observer);
  EXPECT_THAT(texts(job.coordinator.pull(observer, {5, {0}}, kNow)), IsEmpty()) << "no weights yet";
  (void)job.join(0);
  EXPECT_THAT(job.initialized(), ElementsAre("observer 0 v0", "deliver 0 v0"));
  EXPECT_THAT(texts(job.coordinator.pull(observer, {6, {2}}, kNow)), IsEmpty());
  EXPECT_THAT(job.push(0, 1), ElementsAre("apply 0: 0#1", "deliver 0 v1", "ordered"));
  EXPECT_THAT(job.push(0, 2), ElementsAre("apply 1: 0#2", "observer 0 v2", "deliver 0 v2", "ordered"));
  EXPECT_THAT(texts(job.coordinator.pull(observer, {7, {99}}, kNow)), IsEmpty());
  EXPECT_THAT(job.leave(0), ElementsAre("observer 0 v2 stop")) << "the weights at the end";
  EXPECT_TRUE(job.coordinator.finished());
  EXPECT_FALSE(job.coordinator.all_lost());
}

TEST(Observers, KeepTheirNumberWhenTheyComeBack) {
  Events job({"async", 1, 1});
  EXPECT_EQ(job.coordinator.admit(wire::Role::kObserver, {}, {1})->index, 0u);
  EXPECT_EQ(job.coordinator.admit(wire::Role::kObserver, 0, {1})->index, 0u);
  EXPECT_EQ(job.coordinator.admit(wire::Role::kObserver, 9, {2})->index, 1u) << "never given out";
  EXPECT_EQ(job.coordinator.admit(wire::Role::kObserver, 0, {3})->index, 2u) << "another process";
  EXPECT_EQ(job.coordinator.admit(wire::Role::kObserver, 0, {1})->index, 0u);
}

TEST(Servers, AreAsManyAsTheJobHas) {
  Events job({"async", 1, 2});
  EXPECT_EQ(job.coordinator.admit(wire::Role::kServer, {}, {})->index, 1u);
  EXPECT_THAT(job.coordinator.admit(wire::Role::kServer, {}, {}).status().message(),
              HasSubstr("all have joined"));
}

TEST(Stop, AnswersWaitingWorkersAndMakesNoMoreUpdates) {
  Events job({"sync", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(texts(job.coordinator.stop(kNow)), ElementsAre("drop 0#1", "deliver 0 v0 stop"));
  EXPECT_THAT(job.push(1, 1), ElementsAre("drop 1#1", "deliver 1 v0 stop"));
  EXPECT_THAT(job.leave(0), IsEmpty());
  EXPECT_THAT(job.leave(1), IsEmpty());
  EXPECT_TRUE(job.coordinator.finished());
}

// decoupled-diloco waits for slower workers for a grace period: time is an event too.
TEST(Time, EndsAGracePeriod) {
  Events job({"decoupled-diloco:1:1:2s", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  EXPECT_THAT(job.push(0, 1), IsEmpty());
  EXPECT_THAT(texts(job.coordinator.tick(kNow + 1999ms)), IsEmpty());
  EXPECT_THAT(texts(job.coordinator.tick(kNow + 2s)), ElementsAre("apply 0: 0#1", "deliver 0 v1", "ordered"));
}

TEST(Report, CountsWhatWasPushed) {
  Events job({"async", 2, 1});
  (void)job.join(0);
  (void)job.join(1);
  (void)job.initialized();
  (void)job.push(0, 1);
  job.coordinator.progressed({1}, {{7}, 24, 0.5f});
  const auto report = job.coordinator.report();
  EXPECT_EQ(report.version, Version{1});
  EXPECT_EQ(report.workers[0].pushes, 1u);
  EXPECT_EQ(report.workers[0].samples, 8u);
  EXPECT_EQ(report.workers[1].steps, StepCount{7});
  EXPECT_EQ(report.workers[1].samples, 24u) << "reported, not pushed yet";
  EXPECT_EQ(report.workers[1].state, wire::WorkerState::kLive);
  (void)job.lose(1);
  EXPECT_EQ(job.coordinator.report().workers[1].samples, 0u) << "they will not be pushed";
  EXPECT_EQ(job.coordinator.report().workers[1].state, wire::WorkerState::kLost);
}

}  // namespace
}  // namespace capstan::server
