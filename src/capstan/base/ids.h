#pragma once

#include <compare>
#include <cstdint>

namespace capstan {

// A typed integer: identifiers of different kinds do not convert to each other.
template <class Tag, class Int>
struct Id {
  Int value = 0;
  friend auto operator<=>(const Id&, const Id&) = default;
};

using WorkerId = Id<struct WorkerTag, std::uint32_t>;          // rank of a worker, from 0
using ServerId = Id<struct ServerTag, std::uint32_t>;          // index of a server, from 0; 0 is the leader
using Incarnation = Id<struct IncarnationTag, std::uint64_t>;  // one process of a worker; random
using Sequence = Id<struct SequenceTag, std::uint64_t>;        // number of a worker's push, from 1
using StepCount = Id<struct StepTag, std::uint64_t>;           // steps a worker has computed
using PushCount =
    Id<struct PushTag, std::uint64_t>;  // steps, or rounds of local steps, that a worker has pushed
using Version = Id<struct VersionTag, std::uint64_t>;  // updates applied to the weights

}  // namespace capstan
