#pragma once

#include <memory>

#include "capstan/base/time.h"
#include "capstan/cluster/handshake.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/frames.h"

namespace capstan::server {

// A follower's connection to the server that leads. Owned by the server's loop; not thread-safe.
class LeaderLink final : public transport::Handler {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_leader_joined(const wire::Joined& joined) = 0;
    virtual void on_leader_order(const wire::Message& order) = 0;
    virtual void on_leader_lost(Status why) = 0;
  };

  LeaderLink(std::unique_ptr<transport::Connection> connection, const cluster::Token& token, Events& events);

  void send(const wire::Message& message);
  // Ends the connection; on_leader_lost follows, at most once.
  void fail(Status why);
  TimePoint last_heard() const { return connection_->last_arrival(); }

 private:
  transport::Placement place(transport::Connection&, transport::Bytes, std::size_t) override;
  void on_frame(transport::Connection&, transport::Incoming incoming) override;
  void on_closed(transport::Connection&, Status why) override;

  std::unique_ptr<transport::Connection> connection_;
  cluster::ClientHandshake handshake_;
  wire::FrameWriter writer_;
  wire::FrameReader reader_;
  Events& events_;
  bool trusted_ = false;
  bool failed_ = false;
};

}  // namespace capstan::server
