#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "capstan/cluster/channel.h"
#include "capstan/transport/event_loop.h"

namespace capstan::cluster {

// One member's link to one server: connects and joins, retries while the server may still be starting, and
// reconnects after the connection breaks. Owned by the loop's thread; not thread-safe.
class Link final : private Channel::Events {
 public:
  struct Options {
    Token token;
    Duration silence = std::chrono::seconds(3);          // a server that is silent for this long is lost
    Duration reconnect = {};                             // how long to retry after a break; 0: not at all
    Duration retry = std::chrono::milliseconds(20);      // between two attempts
    Duration attempt_timeout = std::chrono::seconds(2);  // from connect to Joined; doubled by each attempt
    Duration reconnect_attempt_timeout = std::chrono::milliseconds(200);  // the same after a break
  };
  // kIdle → kConnecting ⇄ kWaiting; kConnecting → kJoined → kWaiting after a break; all → kEnded.
  enum class State { kIdle, kConnecting, kJoined, kWaiting, kEnded };

  class Events {
   public:
    virtual ~Events() = default;
    // The message to join with; called at each attempt.
    virtual wire::Join make_join() = 0;
    virtual transport::Placement on_payload(Link& link, const wire::Message& message, std::size_t bytes) = 0;
    virtual void on_message(Link& link, const wire::Message& message) = 0;
    // The server accepted this member: the first time, or `again` after a break. `segment` is the one that
    // came with Joined, if any.
    virtual void on_joined(Link& link, std::optional<transport::Segment> segment, bool again) = 0;
    virtual void on_lost(Link& link, Status why) = 0;  // final; the last call
  };
  using Connect = std::function<Result<std::unique_ptr<transport::Connection>>()>;

  Link(transport::EventLoop& loop, Options options, Connect connect, Events& events);
  ~Link() override;

  // Tries to join until `give_up`.
  void open(TimePoint give_up);
  // Ends the link without a call of on_lost().
  void close();
  // From now on, an end of the connection by the server is not a loss.
  void expect_end() { expects_end_ = true; }
  // Called regularly: sends a heartbeat, and gives up a server that is silent since `running_since`, the end
  // of this process's last pause, or for longer.
  void beat(TimePoint running_since);

  State state() const { return state_; }
  bool is_joined() const { return state_ == State::kJoined; }
  bool was_joined() const { return was_joined_; }
  const wire::Joined& joined() const { return joined_; }  // the newest
  const std::string& kind() const { return kind_; }       // of the transport
  bool shares_memory() const { return is_joined() && channel_->shares_memory(); }

  // Messages that are sent while the link is not joined are dropped.
  void send(const wire::Message& message);
  void send(const wire::Message& message, std::span<const float> payload, transport::Sent sent);
  void send(const wire::Message& message, const transport::Segment& segment);

 private:
  void on_trusted(Channel& channel) override;
  transport::Placement on_payload(Channel& channel, const wire::Message& message, std::size_t bytes) override;
  void on_message(Channel& channel, Arrival arrival) override;
  void on_end(Channel& channel, Status why) override;

  void connect();
  void broken(Status why);
  void lose(Status why);
  void set_timer(TimePoint when, std::function<void()> callback);
  void cancel_timer();

  transport::EventLoop& loop_;
  const Options options_;
  const Connect connect_;
  Events& events_;
  std::unique_ptr<Channel> channel_;
  State state_ = State::kIdle;
  bool was_joined_ = false;
  bool expects_end_ = false;
  wire::Joined joined_;
  std::string kind_;
  TimePoint give_up_;
  Duration attempt_timeout_;
  std::optional<transport::EventLoop::TimerId> timer_;
};

}  // namespace capstan::cluster
