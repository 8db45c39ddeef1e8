#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "capstan/base/status.h"
#include "capstan/base/time.h"
#include "capstan/transport/segment.h"

namespace capstan::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// A frame is a small message; the largest that any connection takes.
inline constexpr std::size_t kMaxFrameBytes = 1 << 20;
// A payload is bulk that lands where the receiver says; the largest that any connection takes.
inline constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 36;

// The most messages that wait in one connection for a peer that does not take them.
inline constexpr std::size_t kMaxQueuedMessages = 4096;

class Connection;

// What a handler wants done with a payload that is about to arrive.
struct Placement {
  enum class Action { kReceive, kDiscard, kRefuse };
  Action action = Action::kRefuse;  // kRefuse ends the connection, and on_closed follows
  MutableBytes destination;  // for kReceive: exactly the payload's bytes; stays until on_frame or on_closed

  static Placement receive(MutableBytes destination) { return {Action::kReceive, destination}; }
  static Placement discard() { return {Action::kDiscard, {}}; }
  static Placement refuse() { return {Action::kRefuse, {}}; }
};

// One message as it arrived. `frame` dies with the call.
struct Incoming {
  Bytes frame;
  std::size_t payload_bytes = 0;   // already written to where place() said, unless it was discarded
  std::optional<Segment> segment;  // memory of the sender's, mapped here; only where shares_memory()
};

// Takes what a connection yields. Every call comes on the thread that runs the connection's EventLoop.
// A handler may send on, or close, the connection from within a call.
class Handler {
 public:
  virtual ~Handler() = default;

  // A message with a payload begins: where do its bytes go? Called before on_frame, once per payload, in the
  // order of sending. Payloads that follow each other may be under way together: then place() of a later one
  // comes before on_frame of an earlier one. But every plain frame sent before was delivered.
  virtual Placement place(Connection& connection, Bytes frame, std::size_t payload_bytes) = 0;
  // A message is complete. Messages of one connection complete in the order in which they were sent.
  virtual void on_frame(Connection& connection, Incoming incoming) = 0;
  // The peer is gone, or its bytes made no sense. The last call for this connection; not made after an
  // own close().
  virtual void on_closed(Connection& connection, Status why) = 0;
};

// Runs exactly once, on the loop's thread, when a payload's memory is the caller's again: it left, or the
// connection closed (then with the reason). Never from within send(); none is left when close() returns.
using Sent = std::function<void(Status)>;

// How long a peer may be silent in the middle of a payload, which over UCX moves by megabytes: eight of them
// in this time is the slowest link that works.
inline constexpr auto kPayloadPatience = std::chrono::seconds(10);

// One end of an ordered, reliable connection. Owned by the thread that runs its EventLoop; not
// thread-safe. Destroying it closes it. A message longer than the limits above, or one too many for a peer
// that takes none (kMaxQueuedMessages), ends it: is_open() is false at once, on_closed comes from the loop.
class Connection {
 public:
  virtual ~Connection() = default;

  // Must be set before the loop runs again after the connection was made; messages that come earlier wait.
  virtual void set_handler(Handler* handler) = 0;

  // Sends a frame. `frame` is copied before the call returns. On a closed connection nothing happens.
  virtual void send(Bytes frame) = 0;
  // Sends a frame with a payload straight from the caller's memory, which must not change until `sent` ran.
  // An empty payload is a plain frame: the peer's place() is not asked.
  virtual void send(Bytes frame, Bytes payload, Sent sent) = 0;
  // Sends a frame with a segment attached: the peer maps the same memory. Only where shares_memory().
  virtual void send(Bytes frame, const Segment& segment) = 0;

  // True where the peer can map this side's segments: bulk then needs no payloads.
  virtual bool shares_memory() const = 0;
  // Ends the connection at once, without a word to the peer beyond the end itself. Frames handed to send()
  // before are still delivered where the transport can; pending `sent` run with a failure before it returns,
  // and the destinations that place() gave are the handler's again.
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  // When something of the peer's last arrived, also in the middle of a payload; at first, when it was opened.
  virtual TimePoint last_arrival() const = 0;
  // A payload has begun to arrive and is not complete: on a slow link that can take long, and whatever the
  // peer sent behind it waits.
  virtual bool is_mid_payload() const = 0;
  // For messages to people: "127.0.0.1:4711", "local:4711".
  virtual std::string peer() const = 0;
  // "local", "ucx", "loopback"
  virtual const char* kind() const = 0;
};

// Takes new connections until it is destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::string address() const = 0;  // what a client connects to, as "host:port"
};

using Accept = std::function<void(std::unique_ptr<Connection>)>;

}  // namespace capstan::transport
