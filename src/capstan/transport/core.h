#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

namespace capstan::transport {

// A message on its way out. `frame` and `segment` are the caller's and die with the call that gets it.
struct Outgoing {
  Bytes frame;
  Bytes payload;
  Sent sent;  // empty: nobody asks
  const Segment* segment = nullptr;
};

// The part of a connection that outlives the object its user holds: whatever is under way in the event
// loop keeps it alive, so a handler may close or destroy the connection within any call. It also keeps the
// promises common to all transports: `sent` runs once, on_closed at most once, nothing after the end.
// Transports derive from it. Owned by the loop's thread; not thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(EventLoop& loop) : loop_(loop) {}
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // The object for the user; made once.
  static std::unique_ptr<Connection> make_connection(const std::shared_ptr<Core>& core);

  void set_handler(Handler* handler);
  void send(Outgoing message);
  void close();
  void detach();  // the user's object is gone
  bool is_open() const { return open_ && !failing_; }

  virtual TimePoint last_arrival() const { return last_arrival_; }
  virtual bool is_mid_payload() const = 0;
  virtual bool shares_memory() const = 0;
  virtual std::string peer() const = 0;
  virtual const char* kind() const = 0;

 protected:
  // The handler was set: messages may be delivered from now on, but not from within this call.
  virtual void start() = 0;
  // Sends or queues. Within size limits and on an open connection; calls finish() once `sent` is due.
  virtual void transmit(Outgoing message) = 0;
  // Lets go of everything, and hands over each `sent` that is still due. Called once.
  virtual void shut_down(std::vector<Sent>& unsent) = 0;

  // Ends the connection now, and tells the handler; not from within a call of the user's.
  void end(const Status& why);
  // Ends it from the event loop, soon.
  void end_later(Status why);
  // Runs `sent` from the event loop, soon; at the latest when the connection ends.
  void finish(Sent sent, Status status);

  // Ask and tell the handler. Nothing and false mean that the connection is closed: touch nothing more.
  std::optional<Placement> place(Bytes frame, std::size_t payload_bytes);
  bool deliver(Incoming incoming);

  // Bytes came. What is placed or delivered is noted anyway.
  void note_arrival() { last_arrival_ = loop_.now(); }

  bool has_handler() const { return handler_ != nullptr; }
  bool is_failing() const { return failing_; }
  EventLoop& loop() const { return loop_; }

 private:
  void stop(const Status& why);
  void run_finished();
  void report_closed();

  EventLoop& loop_;
  TimePoint last_arrival_ = loop_.now();
  Connection* outer_ = nullptr;
  Handler* handler_ = nullptr;
  bool open_ = true;
  bool failing_ = false;              // end_later() was called
  std::optional<Status> unreported_;  // why it ended, until on_closed was called
  std::vector<std::pair<Sent, Status>> finished_;
};

}  // namespace capstan::transport
