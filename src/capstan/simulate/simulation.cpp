#include "capstan/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/placement/shards.h"
#include "capstan/simulate/shared_cores.h"
#include "capstan/simulate/units.h"
#include "capstan/strategy/engine.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr SharedCores::Task kServerTask = std::numeric_limits<SharedCores::Task>::max();
constexpr std::uint64_t kWatchEvery = 1 << 16;  // events

enum class EventKind : std::uint8_t {
  kComputed,  // all batches of a round
  kArrived,   // the last byte of a push, at the servers
  kReceived,  // the last byte of the weights, at the worker
  kFails,
  kNoticed,  // servers detect the failure
  kBack,
};

struct Event {
  double time;
  std::uint64_t order;  // of events at the same time: the one that was scheduled first
  std::uint32_t worker;
  std::uint32_t incarnation;  // of the worker; events of earlier incarnations are ignored
  EventKind what;
};

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time > b.time || (a.time == b.time && a.order > b.order);
  }
};

// A FIFO link. `arrival` is when a transfer's first byte arrives; calls are in order of arrival.
class Link {
 public:
  // Returns when the last byte has passed.
  double pass(double arrival, double seconds) {
    free_ = std::max(free_, arrival) + seconds;
    busy_ += seconds;
    return free_;
  }
  double busy(double until) const { return std::max(0.0, busy_ - std::max(0.0, free_ - until)); }

 private:
  double free_ = 0, busy_ = 0;
};

enum class Phase : std::uint8_t {
  kComputing,
  kSending,
  kWaiting,    // for the engine to release it
  kQueued,     // released; waits for the servers' earlier work
  kReceiving,  // the weights
  kDown
};

struct Worker {
  explicit Worker(std::uint64_t seed) : random(seed) {}

  Random random;
  Phase phase = Phase::kComputing;
  std::uint32_t incarnation = 0;
  double since = 0;     // begin of the phase
  double released = 0;  // kReceiving: when the servers' earlier work was done
  double slowness = 1;
  Version version;       // of its weights
  Version next_version;  // of the weights it is about to receive
  std::uint64_t sequence = 0, clock = 0;
  bool returns = false;  // waits for its first weights after a failure
};

class Simulation {
 public:
  Simulation(const Cluster& cluster, std::unique_ptr<strategy::Strategy> strategy)
      : c_(cluster),
        engine_(std::move(strategy), {}, [this] { return clock_; }),
        local_steps_(engine_.strategy().local_steps()),
        spelling_(engine_.strategy().spelling()) {
    // Servers are identical and receive their parts of every push at the same time, so the one with the
    // largest shard represents all.
    for (const auto& range : placement::split(c_.elements, c_.servers))
      shard_bytes_ = std::max(shard_bytes_, static_cast<double>(range.size()) * sizeof(float));
    model_bytes_ = static_cast<double>(c_.elements) * sizeof(float);
    own_seconds_ = model_bytes_ / c_.bandwidth;
    server_seconds_ = shard_bytes_ / c_.server_bandwidth.value_or(c_.bandwidth);
    if (c_.machine) {
      cores_.emplace(c_.machine->cores, c_.memory_rate);
      in_place_ = engine_.strategy().workers_idle_during_update(c_.workers);
    }
    if (!local_steps_.uses_local_steps())
      steps_ = 1;
    else if (local_steps_.epochs == 0)
      steps_ = local_steps_.steps;
    else
      steps_ = local_steps_.epochs * ((c_.samples + batches() - 1) / batches());
  }

  Prediction run(const Watch& watch) {
    begin();
    const auto target = c_.rounds * c_.workers;
    for (std::uint64_t events = 1; p_.rounds < target; ++events) {
      if (!next()) break;
      if (watch && events % kWatchEvery == 0)
        watch(static_cast<double>(p_.rounds) / static_cast<double>(target));
    }
    return finish();
  }

 private:
  std::uint64_t batches() const {
    return std::uint64_t{c_.batch} * c_.workers;
  }  // samples of one batch per worker

  // ---- the queue of events ----

  void schedule(double time, std::uint32_t worker, EventKind what) {
    queue_.push_back({time, ++order_, worker, workers_[worker].incarnation, what});
    std::push_heap(queue_.begin(), queue_.end(), Later());
  }

  void set_clock(double now) {
    now_ = now;
    clock_ = std::max(clock_, TimePoint(from_seconds(now)));
  }

  // Processes the next event; false if there is none.
  bool next() {
    SharedCores::Task task = 0;
    const double at_cores = cores_ ? cores_->next(now_, task) : kNever;
    const double at_queue = queue_.empty() ? kNever : queue_.front().time;
    const auto deadline = engine_.deadline();
    const double at_deadline = deadline ? seconds(deadline->time_since_epoch()) : kNever;
    if (std::min({at_cores, at_queue, at_deadline}) == kNever) return false;
    if (at_deadline < at_queue && at_deadline < at_cores) {
      set_clock(std::max(now_, at_deadline));
      clock_ = std::max(clock_, *deadline);  // in spite of rounding
      carry_out(engine_.tick());
    } else if (at_cores <= at_queue) {
      set_clock(at_cores);
      if (task == kServerTask)
        server_done();
      else
        computed(task);
    } else {
      std::pop_heap(queue_.begin(), queue_.end(), Later());
      const auto event = queue_.back();
      queue_.pop_back();
      set_clock(event.time);
      if (event.incarnation == workers_[event.worker].incarnation) dispatch(event);
    }
    return true;
  }

  void dispatch(const Event& event) {
    switch (event.what) {
      case EventKind::kComputed:
        return computed(event.worker);
      case EventKind::kArrived:
        return arrived(event.worker);
      case EventKind::kReceived:
        return received(event.worker);
      case EventKind::kFails:
        return fails(event.worker);
      case EventKind::kNoticed:
        return carry_out(engine_.remove({event.worker}));
      case EventKind::kBack:
        return back(event.worker);
    }
  }

  // ---- a worker's rounds ----

  void begin() {
    workers_.reserve(c_.workers);
    for (std::uint32_t w = 0; w < c_.workers; ++w) {
      // A random stream per worker, so that its numbers do not depend on the strategy.
      workers_.emplace_back(derive_seed({c_.seed, w}));
      const auto slow = c_.slowness.find(w);
      if (slow != c_.slowness.end()) workers_.back().slowness = slow->second;
      engine_.join({w});
      engine_.pull({w});
    }
    // All begin with the initial weights.
    for (const auto& decision : engine_.begin()) {
      const auto* release = std::get_if<strategy::Release>(&decision);
      CAPSTAN_CHECK(release && release->version.value == 0, "all workers are released at version 0");
      schedule_failure(release->worker.value);
      compute(release->worker.value);
    }
  }

  void compute(std::uint32_t w) {
    auto& worker = workers_[w];
    worker.phase = Phase::kComputing;
    worker.since = now_;
    const double work = worker.slowness * c_.compute.sample_sum(worker.random, steps_);
    if (cores_)
      cores_->begin(w, now_, work, c_.machine->threads, c_.machine->traffic);
    else
      schedule(now_ + work, w, EventKind::kComputed);
  }

  void computed(std::uint32_t w) {
    auto& worker = workers_[w];
    account_phase(worker, w);
    if (cores_) cores_->end(w, now_);
    worker.phase = Phase::kSending;
    worker.since = now_;
    p_.pushed_bytes += model_bytes_;
    // A transfer uses the worker's and the server's link at the same time. The latency is constant, so
    // transfers arrive in the order of sending.
    const double first = now_ + c_.latency;
    schedule(std::max(first + own_seconds_, incoming_.pass(first, server_seconds_)), w, EventKind::kArrived);
  }

  void arrived(std::uint32_t w) {
    auto& worker = workers_[w];
    account_phase(worker, w);
    worker.phase = Phase::kWaiting;
    worker.since = now_;
    worker.clock += steps_;
    ++p_.pushes;
    const auto samples =
        std::min<std::uint64_t>(steps_ * c_.batch, std::numeric_limits<std::uint32_t>::max());
    carry_out(engine_.push({{w},
                            {++worker.sequence},
                            {worker.clock},
                            worker.version,
                            static_cast<std::uint32_t>(samples),
                            worker.version}));
  }

  void received(std::uint32_t w) {
    auto& worker = workers_[w];
    account_phase(worker, w);
    worker.version = worker.next_version;
    if (!std::exchange(worker.returns, false)) ++p_.rounds;
    compute(w);
  }

  void schedule_failure(std::uint32_t w) {
    if (c_.failures > 0)
      schedule(now_ - std::log(1 - workers_[w].random.uniform()) / c_.failures, w, EventKind::kFails);
  }

  void fails(std::uint32_t w) {
    auto& worker = workers_[w];
    account_phase(worker, w);
    if (cores_ && worker.phase == Phase::kComputing) cores_->end(w, now_);
    if (worker.phase == Phase::kComputing || worker.phase == Phase::kSending) ++p_.lost_rounds;
    ++p_.failures;
    if (p_.failures > 10 * p_.rounds + 1000 * std::uint64_t{c_.workers})
      throw UserError(fmt::format(
          "--failures: on average a worker fails every {}, before it can finish a round; use a lower rate",
          time_text(1 / c_.failures)));
    ++worker.incarnation;
    worker.phase = Phase::kDown;
    worker.since = now_;
    schedule(now_ + c_.detection, w, EventKind::kNoticed);
    schedule(now_ + std::max(c_.repair, c_.detection), w, EventKind::kBack);
  }

  void back(std::uint32_t w) {
    auto& worker = workers_[w];
    account_phase(worker, w);
    worker.phase = Phase::kWaiting;
    worker.since = now_;
    worker.returns = true;
    schedule_failure(w);
    carry_out(engine_.join({w}));
    carry_out(engine_.pull({w}));
  }

  // ---- servers ----

  void carry_out(const std::vector<strategy::Decision>& decisions) {
    for (const auto& decision : decisions) std::visit([this](const auto& d) { carry_out(d); }, decision);
  }

  // Reads every contribution once; reads and writes weights and optimizer state.
  void carry_out(const strategy::Apply& apply) {
    for (const auto& merge : apply.merged) count(workers_[merge.worker.value].version, apply.before);
    if (apply.accumulated) {
      for (const auto version : accumulated_) count(version, apply.before);
      accumulated_.clear();
    }
    const bool moves = apply.rule.kind == UpdateRule::Kind::kMove;
    const double read = static_cast<double>(apply.merged.size()) + (apply.accumulated ? 1 : 0);
    const double in_place = moves ? (apply.rule.strength == 0 ? 1 : 2) : 2 * (1 + c_.state_tensors);
    work(read + in_place);
  }

  void carry_out(const strategy::Accumulate& accumulate) {
    accumulated_.push_back(workers_[accumulate.worker.value].version);
    work(accumulate.first ? 2 : 3);
  }

  void carry_out(const strategy::Drop&) { ++p_.dropped; }

  void carry_out(const strategy::Release& release) {
    auto& worker = workers_[release.worker.value];
    if (worker.phase == Phase::kDown) return;  // no process receives them
    account_phase(worker, release.worker.value);
    worker.phase = Phase::kQueued;
    worker.since = now_;
    worker.next_version = release.version;
    if (cores_) {
      if (!in_place_) work(2);  // copied into the worker's memory
      orders_.push_back({0, release.worker.value, worker.incarnation});
      serve();
    } else {
      deliver(release.worker.value, std::max(now_, server_free_));
    }
  }

  void count(Version made_on, Version now) {
    const auto stale = now.value - made_on.value;
    ++p_.applied;
    if (p_.staleness.size() <= stale) p_.staleness.resize(stale + 1);
    ++p_.staleness[stale];
  }

  // Work in which the shard passes `times` through the server's memory. Work is done in order. On one machine
  // all servers share the memory, so the whole model counts.
  void work(double times) {
    const double cost = times * (cores_ ? model_bytes_ : shard_bytes_) / c_.memory_rate;
    if (cost == 0) return;
    if (cores_) {
      orders_.push_back({cost, 0, 0});
      serve();
    } else {
      server_free_ = std::max(now_, server_free_) + cost;
      server_busy_ += cost;
    }
  }

  // Executes the servers' orders on a shared machine, at the speed that its cores allow.
  void serve() {
    while (!serving_ && !orders_.empty()) {
      const auto order = orders_.front();
      orders_.pop_front();
      if (order.work > 0) {
        serving_ = true;
        serving_since_ = now_;
        cores_->begin(kServerTask, now_, order.work, 1, c_.memory_rate);
      } else if (workers_[order.worker].incarnation == order.incarnation &&
                 workers_[order.worker].phase == Phase::kQueued) {
        deliver(order.worker, now_);
      }
    }
  }

  void server_done() {
    cores_->end(kServerTask, now_);
    serving_ = false;
    server_busy_ += now_ - serving_since_;
    serve();
  }

  // Sends weights at `time`, which is not before any earlier delivery.
  void deliver(std::uint32_t w, double time) {
    auto& worker = workers_[w];
    worker.phase = Phase::kReceiving;  // from its release; account_phase() separates the two
    worker.released = time;
    double there = time + c_.latency;
    if (!in_place_) {
      p_.pulled_bytes += model_bytes_;
      there = std::max(time + own_seconds_, outgoing_.pass(time, server_seconds_)) + c_.latency;
    }
    schedule(there, w, EventKind::kReceived);
  }

  // ---- accounting of time ----

  void account(TimeCategory what, double spent) { p_.spent[static_cast<std::size_t>(what)] += spent; }

  // Adds the worker's time since the begin of its phase.
  void account_phase(const Worker& worker, std::uint32_t w) {
    const double spent = now_ - worker.since;
    const auto account_transfer = [&](double took, double bytes_seconds) {
      const double own = std::min(took, c_.latency + bytes_seconds);
      account(TimeCategory::kOwnLink, own);
      account(TimeCategory::kServerLink, took - own);
    };
    switch (worker.phase) {
      case Phase::kComputing: {
        const double alone = cores_ ? std::min(spent, cores_->done(w, now_)) : spent;
        account(TimeCategory::kCompute, alone);
        return account(TimeCategory::kCores, spent - alone);
      }
      case Phase::kSending:
        return account_transfer(spent, own_seconds_);
      case Phase::kWaiting:
        return account(TimeCategory::kOthers, spent);
      case Phase::kQueued:
        return account(TimeCategory::kUpdate, spent);
      case Phase::kReceiving: {
        const double queued = std::clamp(worker.released - worker.since, 0.0, spent);
        account(TimeCategory::kUpdate, queued);
        return account_transfer(spent - queued, in_place_ ? 0 : own_seconds_);
      }
      case Phase::kDown:
        return account(TimeCategory::kDown, spent);
    }
  }

  Prediction finish() {
    for (std::uint32_t w = 0; w < c_.workers; ++w) account_phase(workers_[w], w);
    if (serving_) server_busy_ += now_ - serving_since_;
    p_.strategy = spelling_;
    p_.workers = c_.workers;
    p_.seconds = now_;
    p_.updates = engine_.version().value;
    p_.buffered = p_.pushes - p_.applied - p_.dropped;
    const auto stale = engine_.staleness();
    p_.staleness_mean = stale.mean;
    p_.staleness_max = stale.max;
    if (now_ <= 0) return std::move(p_);
    p_.samples_per_second = static_cast<double>(p_.applied * steps_ * c_.batch) / now_;
    p_.updates_per_second = static_cast<double>(p_.updates) / now_;
    p_.incoming = incoming_.busy(now_) / now_;
    p_.outgoing = outgoing_.busy(now_) / now_;
    p_.updating = std::max(0.0, server_busy_ - std::max(0.0, server_free_ - now_)) / now_;
    if (cores_) p_.cores = cores_->busy(now_) / (now_ * c_.machine->cores);
    for (auto& part : p_.spent) part /= now_ * c_.workers;
    return std::move(p_);
  }

  const Cluster c_;
  double now_ = 0;
  TimePoint clock_{};  // the same for the engine
  strategy::Engine engine_;
  const strategy::LocalSteps local_steps_;
  const std::string spelling_;
  std::uint64_t steps_ = 1;  // of a worker per round
  double model_bytes_ = 0, shard_bytes_ = 0;
  double own_seconds_ = 0, server_seconds_ = 0;  // of a push on the worker's and on the server's link
  bool in_place_ = false;                        // workers read the server's memory

  std::vector<Worker> workers_;
  std::vector<Event> queue_;  // a heap
  std::uint64_t order_ = 0;
  Link incoming_, outgoing_;
  double server_free_ = 0, server_busy_ = 0;
  std::vector<Version> accumulated_;  // base versions of the pushes in the servers' sum

  struct Order {
    double work;  // 0: a release
    std::uint32_t worker, incarnation;
  };
  std::optional<SharedCores> cores_;
  std::deque<Order> orders_;
  bool serving_ = false;
  double serving_since_ = 0;

  Prediction p_;
};

}  // namespace

Prediction simulate(const Cluster& cluster, std::unique_ptr<strategy::Strategy> strategy,
                    const Watch& watch) {
  return Simulation(cluster, std::move(strategy)).run(watch);
}

}  // namespace capstan::simulate
