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
#include "capstan/base/user_error.h"
#include "capstan/placement/shards.h"
#include "capstan/simulate/shared_cores.h"
#include "capstan/simulate/units.h"
#include "capstan/strategy/engine.h"

namespace capstan::simulate {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr SharedCores::Task kServerTask = std::numeric_limits<SharedCores::Task>::max();
constexpr std::uint64_t kWatchEvery = 1 << 16;  // events

enum class Happens : std::uint8_t {
  kComputed,  // the batch, or all of a round's
  kArrived,   // the last byte of a push, at the servers
  kReceived,  // the last byte of the weights, at the worker
  kFails,
  kNoticed,  // that a worker has failed
  kBack,
};

struct Event {
  double time;
  std::uint64_t order;  // of events of the same time: the one that was foreseen first
  std::uint32_t worker;
  std::uint32_t incarnation;  // of the worker; what an earlier incarnation foresaw does not happen
  Happens what;
};

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time > b.time || (a.time == b.time && a.order > b.order);
  }
};

// A link on which everything waits for what came before. Its bytes may still be on their way while it is
// asked for: `arrival` is when the first one is there. Askers come in order of arrival.
class Link {
 public:
  // When the last byte has passed.
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
  kQueued,     // released; servers have work to do before
  kReceiving,  // weights on their way
  kDown
};

struct Worker {
  explicit Worker(std::uint64_t seed) : random(seed) {}

  Random random;
  Phase phase = Phase::kComputing;
  std::uint32_t incarnation = 0;
  double since = 0;     // begin of the phase
  double released = 0;  // kReceiving: when the work of servers before it was done
  double slowness = 1;
  Version version;       // of its weights
  Version next_version;  // of the weights on their way
  std::uint64_t sequence = 0, clock = 0;
  bool returns = false;  // the weights it waits for are the first since it failed
};

class Simulation {
 public:
  Simulation(const Cluster& cluster, std::unique_ptr<strategy::Strategy> strategy)
      : c_(cluster),
        engine_(std::move(strategy), {}, [this] { return clock_; }),
        local_steps_(engine_.strategy().local_steps()),
        spelling_(engine_.strategy().spelling()) {
    // Servers are alike and get their parts of every push at the same time, so the one with most to do
    // stands for all.
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
  std::uint64_t batches() const { return std::uint64_t{c_.batch} * c_.workers; }  // samples of one of each

  // ---- the queue of events ----

  void foresee(double time, std::uint32_t worker, Happens what) {
    queue_.push_back({time, ++order_, worker, workers_[worker].incarnation, what});
    std::push_heap(queue_.begin(), queue_.end(), Later());
  }

  void set_clock(double now) {
    now_ = now;
    clock_ = std::max(clock_, TimePoint(from_seconds(now)));
  }

  // The next thing that happens; false where nothing can.
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
      case Happens::kComputed:
        return computed(event.worker);
      case Happens::kArrived:
        return arrived(event.worker);
      case Happens::kReceived:
        return received(event.worker);
      case Happens::kFails:
        return fails(event.worker);
      case Happens::kNoticed:
        return carry_out(engine_.remove({event.worker}));
      case Happens::kBack:
        return back(event.worker);
    }
  }

  // ---- one worker, from start to end ----

  void begin() {
    workers_.reserve(c_.workers);
    for (std::uint32_t w = 0; w < c_.workers; ++w) {
      // Numbers of its own, so that they do not depend on the strategy.
      workers_.emplace_back(derive_seed({c_.seed, w}));
      const auto slow = c_.slowness.find(w);
      if (slow != c_.slowness.end()) workers_.back().slowness = slow->second;
      engine_.join({w});
      engine_.pull({w});
    }
    // All begin with the first weights in hand.
    for (const auto& decision : engine_.begin()) {
      const auto* release = std::get_if<strategy::Release>(&decision);
      CAPSTAN_CHECK(release && release->version.value == 0, "all may begin at once");
      foresee_failure(release->worker.value);
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
      foresee(now_ + work, w, Happens::kComputed);
  }

  void computed(std::uint32_t w) {
    auto& worker = workers_[w];
    book_phase(worker, w);
    if (cores_) cores_->end(w, now_);
    worker.phase = Phase::kSending;
    worker.since = now_;
    p_.pushed_bytes += model_bytes_;
    // Bytes pass the worker's link and the server's at the same time, the later ones behind the first. All
    // take as long on their way, so they arrive in the order in which they were sent.
    const double first = now_ + c_.latency;
    foresee(std::max(first + own_seconds_, incoming_.pass(first, server_seconds_)), w, Happens::kArrived);
  }

  void arrived(std::uint32_t w) {
    auto& worker = workers_[w];
    book_phase(worker, w);
    worker.phase = Phase::kWaiting;
    worker.since = now_;
    worker.clock += steps_;
    ++p_.pushes;
    const auto samples =
        std::min<std::uint64_t>(steps_ * c_.batch, std::numeric_limits<std::uint32_t>::max());
    carry_out(engine_.push(
        {{w}, {++worker.sequence}, {worker.clock}, worker.version, static_cast<std::uint32_t>(samples)}));
  }

  void received(std::uint32_t w) {
    auto& worker = workers_[w];
    book_phase(worker, w);
    worker.version = worker.next_version;
    if (!std::exchange(worker.returns, false)) ++p_.rounds;
    compute(w);
  }

  void foresee_failure(std::uint32_t w) {
    if (c_.failures > 0)
      foresee(now_ - std::log(1 - workers_[w].random.uniform()) / c_.failures, w, Happens::kFails);
  }

  void fails(std::uint32_t w) {
    auto& worker = workers_[w];
    book_phase(worker, w);
    if (cores_ && worker.phase == Phase::kComputing) cores_->end(w, now_);
    if (worker.phase == Phase::kComputing || worker.phase == Phase::kSending) ++p_.lost_rounds;
    ++p_.failures;
    if (p_.failures > 10 * p_.rounds + 1000 * std::uint64_t{c_.workers})
      throw UserError(fmt::format(
          "--failures: a worker fails every {} in the mean, which is sooner than it finishes a round",
          time_text(1 / c_.failures)));
    ++worker.incarnation;
    worker.phase = Phase::kDown;
    worker.since = now_;
    foresee(now_ + c_.detection, w, Happens::kNoticed);
    foresee(now_ + std::max(c_.repair, c_.detection), w, Happens::kBack);
  }

  void back(std::uint32_t w) {
    auto& worker = workers_[w];
    book_phase(worker, w);
    worker.phase = Phase::kWaiting;
    worker.since = now_;
    worker.returns = true;
    foresee_failure(w);
    carry_out(engine_.join({w}));
    carry_out(engine_.pull({w}));
  }

  // ---- what servers do ----

  void carry_out(const std::vector<strategy::Decision>& decisions) {
    for (const auto& decision : decisions) std::visit([this](const auto& d) { carry_out(d); }, decision);
  }

  // Every contribution is read once, weights and the optimizer's state are read and written.
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
    if (worker.phase == Phase::kDown) return;  // nobody is there to take them
    book_phase(worker, release.worker.value);
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

  // So many times the shard passes through the server's memory. Work is done strictly in turn. On one machine
  // all servers share the memory, so it is the whole model that passes.
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

  // The servers' orders on a shared machine, where work takes as long as the cores allow.
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

  // Weights leave the servers at `time`, which is not before that of any earlier delivery.
  void deliver(std::uint32_t w, double time) {
    auto& worker = workers_[w];
    worker.phase = Phase::kReceiving;  // since it was released: its booking tells the two apart
    worker.released = time;
    double there = time + c_.latency;
    if (!in_place_) {
      p_.pulled_bytes += model_bytes_;
      there = std::max(time + own_seconds_, outgoing_.pass(time, server_seconds_)) + c_.latency;
    }
    foresee(there, w, Happens::kReceived);
  }

  // ---- where the time went ----

  void book(TimeCategory what, double spent) { p_.spent[static_cast<std::size_t>(what)] += spent; }

  // What the worker has spent since its phase began.
  void book_phase(const Worker& worker, std::uint32_t w) {
    const double spent = now_ - worker.since;
    const auto on_the_way = [&](double took, double bytes_seconds) {
      const double own = std::min(took, c_.latency + bytes_seconds);
      book(TimeCategory::kOwnLink, own);
      book(TimeCategory::kServerLink, took - own);
    };
    switch (worker.phase) {
      case Phase::kComputing: {
        const double alone = cores_ ? std::min(spent, cores_->done(w, now_)) : spent;
        book(TimeCategory::kCompute, alone);
        return book(TimeCategory::kCores, spent - alone);
      }
      case Phase::kSending:
        return on_the_way(spent, own_seconds_);
      case Phase::kWaiting:
        return book(TimeCategory::kOthers, spent);
      case Phase::kQueued:
        return book(TimeCategory::kUpdate, spent);
      case Phase::kReceiving: {
        const double queued = std::clamp(worker.released - worker.since, 0.0, spent);
        book(TimeCategory::kUpdate, queued);
        return on_the_way(spent - queued, in_place_ ? 0 : own_seconds_);
      }
      case Phase::kDown:
        return book(TimeCategory::kDown, spent);
    }
  }

  Prediction finish() {
    for (std::uint32_t w = 0; w < c_.workers; ++w) book_phase(workers_[w], w);
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
  std::uint64_t steps_ = 1;  // that a worker computes in a round
  double model_bytes_ = 0, shard_bytes_ = 0;
  double own_seconds_ = 0, server_seconds_ = 0;  // of a push on the worker's and on the server's link
  bool in_place_ = false;                        // weights are read where the server keeps them

  std::vector<Worker> workers_;
  std::vector<Event> queue_;  // a heap
  std::uint64_t order_ = 0;
  Link incoming_, outgoing_;
  double server_free_ = 0, server_busy_ = 0;
  std::vector<Version> accumulated_;  // what the pushes in the servers' sum were made on

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
