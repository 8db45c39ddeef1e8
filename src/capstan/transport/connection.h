#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "capstan/base/time.h"
#include "capstan/status.h"
#include "capstan/transport/segment.h"

namespace capstan::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// The largest frame. A frame is a small message.
inline constexpr std::size_t kMaxFrameBytes = 1 << 20;
// The largest payload. A payload is bulk data that the receiver places.
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 36;

// The most messages that one connection queues for a peer that does not read them.
inline constexpr std::size_t kMaxQueuedMessages = 4096;

class Connection;

// A handler's decision about a payload that is about to arrive.
struct Placement {
  enum class Action { kReceive, kDiscard, kRefuse };
  Action action = Action::kRefuse;  // kRefuse ends the connection, and on_closed follows
  MutableBytes destination;         // for kReceive: of the payload's size; valid until on_frame or on_closed

  static Placement receive(MutableBytes destination) { return {Action::kReceive, destination}; }
  static Placement discard() { return {Action::kDiscard, {}}; }
  static Placement refuse() { return {Action::kRefuse, {}}; }
};

// One complete message. `frame` is valid during the call only.
struct Incoming {
  Bytes frame;
  std::size_t payload_bytes = 0;   // already written to the destination from place(), unless discarded
  std::optional<Segment> segment;  // memory of the sender, mapped here; only if shares_memory()
};

// Receives the messages and the end of a connection. Every call is made on the thread that runs the
// connection's EventLoop. A handler may send on the connection, or close it, within a call.
class Handler {
 public:
  virtual ~Handler() = default;

  // Chooses the destination of a payload. Called before on_frame, once per payload, in the order of sending.
  // Consecutive payloads may arrive at the same time: then place() of a later one comes before on_frame of an
  // earlier one. Every frame without a payload that was sent before has been delivered.
  virtual Placement place(Connection& connection, Bytes frame, std::size_t payload_bytes) = 0;
  // A message is complete. Messages of one connection complete in the order in which they were sent.
  virtual void on_frame(Connection& connection, Incoming incoming) = 0;
  // The peer closed or was lost, or sent malformed bytes. The last call for this connection; not made after
  // close().
  virtual void on_closed(Connection& connection, Status why) = 0;
};

// Runs exactly once, on the loop's thread, when the caller may reuse a payload's memory: the payload was
// sent, or the connection closed (then with the reason). Never within send(); all have run when close()
// returns.
using Sent = std::function<void(Status)>;

// How long a peer may be silent in the middle of a payload. Over UCX a piece of 1 MB counts only when it is
// complete, and eight arrive at once, so a link must transfer 8 MB in this time.
inline constexpr auto kPayloadTimeout = std::chrono::seconds(10);

// One end of an ordered, reliable connection. Owned by the thread that runs its EventLoop; not thread-safe.
// Destroying it closes it. A message beyond the size limits, or more than kMaxQueuedMessages unread ones,
// ends it: is_open() is false at once, and the loop calls on_closed.
class Connection {
 public:
  virtual ~Connection() = default;

  // Must be called before the loop runs again after the connection was created; earlier messages wait.
  virtual void set_handler(Handler* handler) = 0;

  // Sends a frame. `frame` is copied before the call returns. On a closed connection nothing happens.
  virtual void send(Bytes frame) = 0;
  // Sends a frame with a payload from the caller's memory, which must not change until `sent` has run. With
  // an empty payload the peer's place() is not called.
  virtual void send(Bytes frame, Bytes payload, Sent sent) = 0;
  // Sends a frame with a segment: the peer maps the same memory. Only if shares_memory().
  virtual void send(Bytes frame, const Segment& segment) = 0;

  // True if the peer can map this side's segments, so that bulk data needs no payloads.
  virtual bool shares_memory() const = 0;
  // Ends the connection at once. Frames that were sent before are still delivered if the transport can;
  // pending `sent` run with a failure before this returns, and destinations from place() are no longer used.
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  // When bytes from the peer last arrived, including in the middle of a payload; initially, when it was
  // opened.
  virtual TimePoint last_arrival() const = 0;
  // A payload has begun to arrive and is not complete: on a slow link that can take long, and everything that
  // the peer sent after it waits.
  virtual bool is_mid_payload() const = 0;
  // For messages: "127.0.0.1:4711", "local:4711".
  virtual std::string peer() const = 0;
  // "local", "ucx", "loopback"
  virtual const char* kind() const = 0;
};

// Accepts new connections until it is destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::string address() const = 0;  // what a client connects to, as "host:port"
};

using Accept = std::function<void(std::unique_ptr<Connection>)>;

}  // namespace capstan::transport
