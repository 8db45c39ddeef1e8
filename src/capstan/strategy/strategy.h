#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "capstan/base/ids.h"
#include "capstan/base/time.h"
#include "capstan/base/update_rule.h"

// Synchronisation strategies as pure decisions: no threads, no sockets, no tensors, no clock of their own.
namespace capstan::strategy {

// A worker's push: a gradient or, after local steps, its weights or their change.
struct Push {
  WorkerId worker;
  Sequence sequence;
  StepCount steps;  // that the worker has computed up to this push
  Version version;  // of the weights that the push was computed on
  std::uint32_t samples = 0;
  Version step = {};      // that began the worker's step; equal to `version` if a step is one push
  bool ends_step = true;  // its last phase
  // Set by the engine:
  TimePoint arrived = {};
  bool accumulated = false;  // is part of the servers' sum
};

// Number of updates since the version that the push was computed on.
std::uint64_t staleness(const Push& push, Version now);

struct LiveWorker {
  WorkerId id;
  PushCount pushes;       // that ended a step; starts at that of the slowest worker when it joins
  bool buffered = false;  // its newest push waits in the buffer
};

// The state that a strategy decides on.
struct View {
  Version version;                   // updates applied
  std::span<const LiveWorker> live;  // by rank
  std::span<const Push> buffer;      // admitted, not yet applied; in order of arrival
  PushCount slowest;                 // fewest pushes of a live worker
  TimePoint now;
};

enum class Admission {
  kTake,        // buffer it; the worker must not reuse its arena until the push is applied
  kAccumulate,  // buffer it and add it to a sum that the servers keep: the worker need not wait
  kDrop,
};

struct Trigger {
  std::size_t count = 0;             // how many buffered pushes, oldest first, become one update now
  std::optional<TimePoint> at = {};  // or when to ask again if no event comes before
};

// Totals of the pushes that are about to be merged.
struct Merging {
  std::size_t pushes = 0;
  double samples = 0;
  Version now;  // before the update
};

// What a worker does between two pushes, and what it pushes.
struct LocalSteps {
  enum class Payload {
    kGradient,  // of one batch, on the weights it pulled
    kWeights,   // its own, after local steps
    kDelta,     // the weights it pulled minus its own
  };
  Payload payload = Payload::kGradient;
  std::uint64_t steps = 1;        // local steps per push
  std::uint64_t epochs = 0;       // if not 0, instead of `steps`: passes over the worker's part of the data
  double move = 1;                // after a pull of w: x -= move·(x - w)
  const char* optimizer = "sgd";  // default of the worker's optimizer

  bool uses_local_steps() const { return payload != Payload::kGradient; }
};

// The step that servers make with merged deltas: SGD with Nesterov momentum.
struct OuterStep {
  double rate = 1;
  double momentum = 0;
};

// One rule of synchronisation. Immutable, so several engines may share it.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // As in --strategy, options included: "batch:4".
  virtual std::string spelling() const = 0;

  // ---- the five decisions ----

  // A push arrives; `view` does not hold it yet.
  virtual Admission admit(const Push&, const View&) const { return Admission::kTake; }
  // The factor of one of the pushes that are about to be merged; for an accumulated push, `merging` holds
  // that push only.
  virtual double weight(const Push& push, const Merging& merging) const;
  virtual Trigger trigger(const View& view) const = 0;
  // The rule by which these pushes change the weights.
  virtual UpdateRule apply(std::span<const Push>, Version) const { return {}; }
  // May this worker have the weights now? Asked when the worker pulls, when its push is applied or dropped,
  // when the fewest pushes of a live worker change, and when a worker joins or leaves.
  virtual bool release(const LiveWorker& worker, const View& view) const;

  // ---- facts ----

  virtual LocalSteps local_steps() const { return {}; }
  // The servers' optimizer, where the job's optimizer is for the workers' local steps.
  virtual std::optional<OuterStep> outer() const { return {}; }
  // Whether servers keep the mean of squared gradients, for UpdateRule::Kind::kCompensateAdaptive.
  virtual bool needs_mean_square() const { return false; }
  // Whether it corrects a push by the weights that the push was computed on.
  virtual bool compensates() const { return false; }
  // Whether it drops pushes of past steps, so that a step must be one update of every group.
  virtual bool drops_by_step() const { return false; }
  // True if no update can happen while any of `workers` workers computes, so that workers may read the
  // server's weights in place.
  virtual bool workers_idle_during_update(std::uint32_t workers) const = 0;
  // Pushes per update, dropped ones included, while all of `workers` workers take part: for estimates and
  // schedules.
  virtual std::uint32_t pushes_per_update(std::uint32_t workers) const = 0;
};

// One update of all buffered pushes once every live worker has pushed. Each worker waits after its push, so
// as many pushes as workers means one of each.
Trigger when_all_have_pushed(const View& view);

// Every strategy, in the order of the help text. To add one, add a line in table.cpp.
struct Entry {
  const char* name;
  const char* options;  // as in "K" or "H:K:GRACE"; empty for none
  const char* summary;  // one line for help, defaults included
  // `options` is the text after the name's colon. Throws UserError.
  std::unique_ptr<Strategy> (*make)(const std::string& options, std::uint32_t workers);
};
std::span<const Entry> table();

// "sync", "batch:4" for a job of `workers` workers. Throws UserError, for an unknown name with the nearest
// known one.
std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers);

}  // namespace capstan::strategy
