#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "capstan/base/time.h"
#include "capstan/cluster/handshake.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/frames.h"

namespace capstan::cluster {

// A message with its payload's size and its segment, if any.
struct Arrival {
  wire::Message message;
  std::size_t payload_bytes = 0;
  std::optional<transport::Segment> segment;
};

// One authenticated connection with numbered messages, for either end. Both ends first prove that they know
// the token; messages pass only after that. Malformed bytes, a missing message or a refusal by the peer end
// this channel and nothing else. Owned by the thread of the connection's loop; not thread-safe.
class Channel final : private transport::Handler {
 public:
  enum class Side { kAccepting, kConnecting };
  // kHandshake → kTrusted → kEnded, or kHandshake → kEnded.
  enum class State { kHandshake, kTrusted, kEnded };

  // Every call comes on the loop's thread. None is made after close().
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_trusted(Channel& channel) = 0;
    // The payload of this message begins to arrive.
    virtual transport::Placement on_payload(Channel& channel, const wire::Message& message,
                                            std::size_t bytes) = 0;
    // Heartbeats are not passed on.
    virtual void on_message(Channel& channel, Arrival arrival) = 0;
    virtual void on_end(Channel& channel, Status why) = 0;  // the last call
  };

  Channel(Side side, std::unique_ptr<transport::Connection> connection, const Token& token, Events& events);

  void send(const wire::Message& message);
  void send(const wire::Message& message, std::span<const float> payload, transport::Sent sent);
  void send(const wire::Message& message, const transport::Segment& segment);

  // Sends the reason, then ends. Calls on_end before it returns.
  void refuse(const std::string& reason);
  // Ends without a message: the peer may try again.
  void end(Status why);
  // Ends without a message and without on_end.
  void close();

  State state() const { return state_; }
  bool is_trusted() const { return state_ == State::kTrusted; }
  bool has_ended() const { return state_ == State::kEnded; }
  bool shares_memory() const { return connection_->shares_memory(); }
  std::string peer() const { return connection_->peer(); }
  const char* kind() const { return connection_->kind(); }
  TimePoint last_heard() const { return connection_->last_arrival(); }
  // Nothing has arrived for longer than `limit`; in the middle of a payload, for longer than
  // kPayloadTimeout. The time before `since` does not count.
  bool is_silent(TimePoint now, Duration limit, TimePoint since = {}) const;

 private:
  transport::Placement place(transport::Connection&, transport::Bytes frame, std::size_t bytes) override;
  void on_frame(transport::Connection&, transport::Incoming incoming) override;
  void on_closed(transport::Connection&, Status why) override;
  void continue_handshake(const wire::Message& message);
  void trust();

  std::unique_ptr<transport::Connection> connection_;
  Events& events_;
  std::variant<ClientHandshake, ServerHandshake> handshake_;
  wire::FrameWriter writer_;
  wire::FrameReader reader_;
  State state_ = State::kHandshake;
};

}  // namespace capstan::cluster
