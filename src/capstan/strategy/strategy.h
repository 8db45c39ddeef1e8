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

// What a worker has handed in: a gradient or, where it trains by itself for a while, what came of it.
struct Push {
  WorkerId worker;
  Sequence sequence;
  StepCount steps;  // that the worker has computed, up to this push
  Version version;  // of the weights it began with
  std::uint32_t samples = 0;
  // Set by the engine:
  TimePoint arrived = {};
  bool accumulated = false;  // it is part of the servers' sum
};

// How many updates the weights have had since those with which the push began.
std::uint64_t staleness(const Push& push, Version now);

struct LiveWorker {
  WorkerId id;
  PushCount pushes;       // that it has made; one that joins later begins with as many as the slowest
  bool buffered = false;  // its newest push waits in the buffer
};

// What a strategy may look at.
struct View {
  Version version;                   // updates applied
  std::span<const LiveWorker> live;  // by rank
  std::span<const Push> buffer;      // admitted, not yet applied; in order of arrival
  PushCount slowest;                 // of the live workers
  TimePoint now;
};

enum class Admission {
  kTake,        // into the buffer, where it stays as the worker's own until it is applied
  kAccumulate,  // into the buffer, and into a sum that the servers keep: the worker need not wait
  kDrop,
};

struct Trigger {
  std::size_t count = 0;             // how many of the buffered pushes, oldest first, become one update now
  std::optional<TimePoint> at = {};  // or when to ask again, if nothing happens before
};

// The pushes that are about to be merged, as a whole.
struct Merging {
  std::size_t pushes = 0;
  double samples = 0;
  Version now;  // before the update
};

// What a worker does from one push to the next.
struct LocalSteps {
  enum class Payload {
    kGradient,  // of one batch, on the weights it was given
    kWeights,   // its own, after steps of its own
    kDelta,     // the weights it was given less its own
  };
  Payload payload = Payload::kGradient;
  std::uint64_t steps = 1;        // of its own optimizer
  std::uint64_t epochs = 0;       // instead, where not 0: so many passes over its part of the data
  double move = 1;                // how far it goes towards the weights it gets: x -= move·(x - w)
  const char* optimizer = "sgd";  // what it trains with unless the user says otherwise

  bool uses_local_steps() const { return payload != Payload::kGradient; }
};

// The step that servers make of merged deltas: gradient descent with Nesterov's momentum.
struct OuterStep {
  double rate = 1;
  double momentum = 0;
};

// One rule of synchronisation. Immutable; owned by the Engine.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // How a user spells it, options included: "batch:4".
  virtual std::string spelling() const = 0;

  // ---- the five decisions ----

  // A push arrives; `view` does not hold it yet.
  virtual Admission admit(const Push&, const View&) const { return Admission::kTake; }
  // How much one of the pushes that are about to be merged counts; a accumulated one is alone with itself.
  virtual double weight(const Push& push, const Merging& merging) const;
  virtual Trigger trigger(const View& view) const = 0;
  // What is done with these pushes.
  virtual UpdateRule apply(std::span<const Push>, Version) const { return {}; }
  // May this worker have the weights now? Asked when it comes for them, when its push has been settled, when
  // the slowest has moved on, and when somebody has come or gone.
  virtual bool release(const LiveWorker& worker, const View& view) const;

  // ---- facts ----

  virtual LocalSteps local_steps() const { return {}; }
  // Where the servers' optimizer is not the job's, which is then the workers' own.
  virtual std::optional<OuterStep> outer() const { return {}; }
  // Servers are to keep the mean of squared gradients, for UpdateRule::Kind::kCompensateAdaptive.
  virtual bool needs_mean_square() const { return false; }
  // True where no update can happen while any of `workers` workers computes, so that all may read the
  // weights where the server keeps them.
  virtual bool workers_idle_during_update(std::uint32_t workers) const = 0;
  // Pushes, dropped ones included, for each update while all of `workers` workers take part: for estimates
  // and schedules.
  virtual std::uint32_t pushes_per_update(std::uint32_t workers) const = 0;
};

// One update of everything, once every live worker has handed in: each hands in one push and then waits, so
// as many pushes as workers means one of each.
Trigger when_all_are_there(const View& view);

// Every strategy there is, in the order in which help lists them. To add one, add a line in table.cpp.
struct Entry {
  const char* name;
  const char* options;  // as in "K" or "H:K:GRACE"; empty for none
  const char* summary;  // one line for help, defaults included
  // `options` is what follows the name's colon. Throws UserError.
  std::unique_ptr<Strategy> (*make)(const std::string& options, std::uint32_t workers);
};
std::span<const Entry> table();

// "sync", "batch:4" for a job of `workers` workers. Throws UserError that names the nearest right spelling.
std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers);

}  // namespace capstan::strategy
