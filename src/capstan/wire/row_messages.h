#pragma once

#include <cstdint>
#include <vector>

// Parts of messages about row tensors (base/row_tensors.h).
namespace capstan::wire {

// The rows of a push, for a server that has a part of a row tensor. Payload: base/row_payload.h.
struct PushedRows {
  std::uint64_t held = 0;             // number of the last answer of this server that the worker has taken
  std::vector<std::uint32_t> counts;  // rows of each part of the phase that the server has
  std::uint64_t pushed_bytes = 0;     // of the rows of this push, to all servers; for the status report
  std::uint64_t pulled_bytes = 0;     // of the rows of all answers since the last push; for the status report
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.held), v(m.counts), v(m.pushed_bytes), v(m.pulled_bytes);
  }
};

// The rows of an answer, from a server that has a part of a row tensor.
struct AnsweredRows {
  std::uint64_t number = 0;           // of this server's answers to the worker, from 1
  bool whole = true;                  // the server's whole range, not only the rows that changed
  std::vector<std::uint32_t> counts;  // otherwise: rows of each part that the server has
  std::uint64_t bytes = 0;            // of these rows; for the status report
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.number), v(m.whole), v(m.counts), v(m.bytes);
  }
};

}  // namespace capstan::wire
