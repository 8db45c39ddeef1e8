#pragma once

#include <memory>
#include <optional>

#include "capstan/base/time.h"
#include "capstan/cluster/handshake.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/frames.h"

namespace capstan::server {

class Session;

// A message with what came along.
struct Arrival {
  wire::Message message;
  std::size_t payload_bytes = 0;
  std::optional<transport::Segment> segment;
};

// What a session tells its server once the peer is trusted.
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  virtual void on_join(Session& session, const wire::Join& join) = 0;
  // A payload that belongs to a push or to initial weights begins.
  virtual transport::Placement on_payload(Session& session, const wire::Message& message,
                                          std::size_t bytes) = 0;
  virtual void on_message(Session& session, Arrival arrival) = 0;
  virtual void on_end(Session& session, Status why) = 0;  // the last call
};

// One client's connection: proves the token, then passes on decoded messages. Bytes that make no sense end
// this connection and nothing else. Owned by the server's loop; not thread-safe.
class Session final : public transport::Handler {
 public:
  Session(std::unique_ptr<transport::Connection> connection, const cluster::Token& token,
          SessionEvents& events);

  void send(const wire::Message& message);
  void send(const wire::Message& message, std::span<const float> payload, transport::Sent sent);
  void send(const wire::Message& message, const transport::Segment& segment);
  // Says why, then ends. on_end follows, from the loop.
  void refuse(const std::string& reason);
  // Ends without a word: the client may try again.
  void end(Status why);
  // Ends without a word and without on_end.
  void abandon();

  const transport::Connection& connection() const { return *connection_; }
  bool shares_memory() const { return connection_->shares_memory(); }
  bool trusted() const { return trusted_; }
  const std::optional<wire::Member>& member() const { return member_; }
  void set_member(const wire::Member& member) { member_ = member; }
  TimePoint last_heard() const { return connection_->last_arrival(); }
  // No sign of life for longer than `silence`, or than a payload may stand still.
  bool is_silent(TimePoint now, Duration silence) const;
  bool ended() const { return ended_; }

 private:
  transport::Placement place(transport::Connection&, transport::Bytes frame, std::size_t bytes) override;
  void on_frame(transport::Connection&, transport::Incoming incoming) override;
  void on_closed(transport::Connection&, Status why) override;
  void take_hello(const wire::Message& message);

  std::unique_ptr<transport::Connection> connection_;
  SessionEvents& events_;
  cluster::ServerHandshake handshake_;
  wire::FrameWriter writer_;
  wire::FrameReader reader_;
  bool trusted_ = false;
  bool ended_ = false;
  std::optional<wire::Member> member_;
};

}  // namespace capstan::server
