#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "capstan/simulate/simulation.h"

namespace capstan::simulate {
namespace {

Cluster any_cluster() {
  Cluster c;
  c.workers = *rc::gen::inRange(1u, 12u);
  c.servers = *rc::gen::inRange(1u, 5u);
  c.elements = *rc::gen::inRange(1u, 100'000u);
  c.samples = 1000;
  c.rounds = *rc::gen::inRange(1u, 60u);
  c.compute = Distribution::parse(
      "", *rc::gen::element<std::string>("0.1", "lognormal(0.1,1)", "exponential(0.1)", "uniform(0,0.2)"));
  if (*rc::gen::arbitrary<bool>()) c.bandwidth = *rc::gen::element(1e5, 1e6, 1e8);
  c.latency = *rc::gen::element(0.0, 1e-4, 0.05);
  c.memory_rate = *rc::gen::element(1e6, 1e9);
  c.failures = *rc::gen::element(0.0, 0.001, 0.02);
  c.repair = *rc::gen::element(0.0, 0.5, 5.0);
  c.detection = *rc::gen::element(0.0, 1.5);
  if (*rc::gen::arbitrary<bool>()) c.machine = SharedMachine{*rc::gen::element(1.0, 2.0, 16.0), 1};
  c.slowness = {{0, *rc::gen::element(0.5, 1.0, 20.0)}};
  c.seed = *rc::gen::arbitrary<std::uint64_t>();
  return c;
}

std::string any_strategy() {
  return *rc::gen::element<std::string>("sync", "async", "async:damped", "batch:1", "batch", "ssp:0", "ssp:2",
                                        "backup", "dc-asgd", "easgd:0.1:3", "local-sgd:4", "diloco:20",
                                        "decoupled-diloco:4:1:0.05s", "decoupled-diloco:2", "fedavg",
                                        "fedbuff:3:2:1");
}

// Any strategy, with counts of its inputs and decisions.
class Counted final : public strategy::Strategy {
 public:
  struct Counts {
    std::uint64_t pushes = 0, refused = 0, applied = 0;
  };
  Counted(std::unique_ptr<strategy::Strategy> inner, Counts& counts)
      : inner_(std::move(inner)), counts_(counts) {}

  std::string spelling() const override { return inner_->spelling(); }
  strategy::Admission admit(const strategy::Push& push, const strategy::View& view) const override {
    const auto admission = inner_->admit(push, view);
    ++counts_.pushes;
    if (admission == strategy::Admission::kDrop) ++counts_.refused;
    return admission;
  }
  double weight(const strategy::Push& push, const strategy::Merging& merging) const override {
    return inner_->weight(push, merging);
  }
  strategy::Trigger trigger(const strategy::View& view) const override {
    const auto trigger = inner_->trigger(view);
    counts_.applied += trigger.count;
    return trigger;
  }
  UpdateRule apply(std::span<const strategy::Push> pushes, Version version) const override {
    return inner_->apply(pushes, version);
  }
  bool release(const strategy::LiveWorker& worker, const strategy::View& view) const override {
    return inner_->release(worker, view);
  }
  strategy::LocalSteps local_steps() const override { return inner_->local_steps(); }
  std::optional<strategy::OuterStep> outer() const override { return inner_->outer(); }
  bool needs_mean_square() const override { return inner_->needs_mean_square(); }
  bool workers_idle_during_update(std::uint32_t workers) const override {
    return inner_->workers_idle_during_update(workers);
  }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override {
    return inner_->pushes_per_update(workers);
  }

 private:
  const std::unique_ptr<strategy::Strategy> inner_;
  Counts& counts_;
};

RC_GTEST_PROP(SimulationProperty, EveryPushAndEverySecondIsAccountedFor, ()) {
  const auto c = any_cluster();
  const auto strategy = any_strategy();
  Counted::Counts decided;
  const auto p = simulate(c, std::make_unique<Counted>(strategy::parse(strategy, c.workers), decided));
  RC_TAG(strategy);
  // All workers continue to the end.
  RC_ASSERT(p.rounds == c.rounds * c.workers);
  // A completed round includes a push; at most one push per worker is in flight.
  RC_ASSERT(p.pushes >= p.rounds);
  RC_ASSERT(p.pushes <= p.rounds + c.workers + p.failures);
  // The strategy saw each push; besides those that it drops, only pushes of lost workers are dropped.
  RC_ASSERT(p.pushes == decided.pushes);
  RC_ASSERT(p.applied == decided.applied);
  RC_ASSERT(p.dropped >= decided.refused);
  RC_ASSERT(p.dropped <= decided.refused + p.failures);
  RC_ASSERT(p.applied + p.dropped <= p.pushes);
  const bool accumulates = strategy.starts_with("fedbuff");
  RC_ASSERT(p.buffered <= (accumulates ? 3u : c.workers));
  RC_ASSERT(std::accumulate(p.staleness.begin(), p.staleness.end(), std::uint64_t{0}) == p.applied);
  // The engine counts the same.
  double stale = 0;
  for (std::size_t i = 0; i < p.staleness.size(); ++i)
    stale += static_cast<double>(i) * static_cast<double>(p.staleness[i]);
  if (p.applied > 0) RC_ASSERT(std::abs(stale / static_cast<double>(p.applied) - p.staleness_mean) < 1e-9);
  RC_ASSERT((p.staleness.empty() ? p.staleness_max == 0 : p.staleness_max + 1 == p.staleness.size()));
  RC_ASSERT(std::abs(std::accumulate(p.spent.begin(), p.spent.end(), 0.0) - 1) < 1e-6);
  for (const auto part : p.spent) RC_ASSERT(part >= -1e-9);
  for (const auto busy : {p.incoming, p.outgoing, p.updating, p.cores})
    RC_ASSERT((busy >= 0 && busy <= 1 + 1e-9));
  if (c.failures == 0) RC_ASSERT(p.part(TimeCategory::kDown) == 0);
}

// More workers never make fewer pushes per second, unless the strategy makes them wait for each other.
RC_GTEST_PROP(SimulationProperty, NoWorkerIsFasterThanItsComputeTime, ()) {
  auto c = any_cluster();
  c.compute = Distribution::constant(0.1);
  c.failures = 0;
  c.slowness.clear();
  const auto p = simulate(c, strategy::parse("async", c.workers));
  RC_ASSERT(p.seconds >= static_cast<double>(c.rounds) * 0.1 - 1e-9);
  if (!c.machine && std::isfinite(c.bandwidth)) {
    // All received bytes have passed the link of each server.
    const double shard = static_cast<double>(c.elements) * 4 / c.servers;
    RC_ASSERT(static_cast<double>(p.pushes) * shard / c.bandwidth <= p.seconds * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace capstan::simulate
