#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "capstan/base/ids.h"

// Synchronisation strategies as pure decisions: no threads, no sockets, no tensors, no clock of their own.
namespace capstan::strategy {

// A gradient that a worker has handed in.
struct Push {
  WorkerId worker;
  Sequence sequence;
  Clock clock;      // steps the worker has computed, this one included
  Version version;  // of the weights the gradient was computed on
  std::uint32_t samples = 0;
};

// How many updates the weights have had since those on which the push was computed.
std::uint64_t staleness(const Push& push, Version now);

struct LiveWorker {
  WorkerId id;
  Clock clock;            // of its newest push
  bool buffered = false;  // its newest push waits in the buffer
};

// What a strategy may look at.
struct View {
  Version version;                   // updates applied
  std::span<const LiveWorker> live;  // by rank
  std::span<const Push> buffer;      // admitted, not yet applied; in order of arrival
};

enum class Admission { kTake, kDrop };

// One rule of synchronisation. Immutable; owned by the Engine.
class Strategy {
 public:
  virtual ~Strategy() = default;

  // How a user spells it, options included: "batch:4".
  virtual std::string spelling() const = 0;

  // A push arrives; `view` does not hold it yet.
  virtual Admission admit(const Push&, const View&) const { return Admission::kTake; }
  // How many of the buffered pushes, oldest first, become one update now; 0 for none.
  virtual std::size_t trigger(const View& view) const = 0;
  // How much one of the pushes that are about to be merged counts.
  virtual double weight(const Push& push, std::span<const Push> merged) const;
  // What the learning rate of the update of these pushes is multiplied by.
  virtual double rate(std::span<const Push>, Version) const { return 1; }
  // May this worker have the weights now? Asked whenever something changed.
  virtual bool release(const LiveWorker& worker, const View& view) const;
  // True where no update can happen while any of `workers` workers computes, so that all may read the
  // weights where the server keeps them.
  virtual bool parks_all(std::uint32_t workers) const = 0;
  // Pushes that make one update while all of `workers` workers take part: for estimates and schedules.
  virtual std::uint32_t pushes_per_update(std::uint32_t workers) const = 0;
};

// Every strategy there is, in the order in which help lists them. To add one, add a line in table.cpp.
struct Entry {
  const char* name;
  const char* options;  // as in "K"; empty for none
  const char* summary;  // one line for help
  // `options` is what follows the name's colon. Throws UserError.
  std::unique_ptr<Strategy> (*make)(const std::string& options, std::uint32_t workers);
};
std::span<const Entry> table();

// "sync", "batch:4" for a job of `workers` workers. Throws UserError that names the nearest right spelling.
std::unique_ptr<Strategy> parse(const std::string& text, std::uint32_t workers);

}  // namespace capstan::strategy
