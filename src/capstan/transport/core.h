#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

namespace capstan::transport {

// A message to send. `frame` and `segment` belong to the caller and are valid during the call only.
struct Outgoing {
  Bytes frame;
  Bytes payload;
  Sent sent;  // may be empty
  const Segment* segment = nullptr;
};

// The part of a connection that outlives the user's object: pending work in the event loop holds a reference,
// so a handler may close or destroy the connection within any call. It also guarantees what all transports
// have in common: `sent` runs once, on_closed at most once, nothing after the end. Transports derive from it.
// Owned by the loop's thread; not thread-safe.
class Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(EventLoop& loop) : loop_(loop) {}
  virtual ~Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Creates the user's object; called once.
  static std::unique_ptr<Connection> make_connection(const std::shared_ptr<Core>& core);

  void set_handler(Handler* handler);
  void send(Outgoing message);
  void close();
  void detach();  // the user's object was destroyed
  bool is_open() const { return open_ && !failing_; }

  virtual TimePoint last_arrival() const { return last_arrival_; }
  virtual bool is_mid_payload() const = 0;
  virtual bool shares_memory() const = 0;
  virtual std::string peer() const = 0;
  virtual const char* kind() const = 0;

 protected:
  // The handler was set: messages may be delivered from now on, but not within this call.
  virtual void start() = 0;
  // Sends or queues a message. Called within size limits and on an open connection; calls finish() once
  // `sent` is due.
  virtual void transmit(Outgoing message) = 0;
  // Releases everything and appends each `sent` that is still due to `unsent`. Called once.
  virtual void shut_down(std::vector<Sent>& unsent) = 0;

  // Ends the connection now and calls on_closed; not within a call by the user.
  void end(const Status& why);
  // Ends the connection from the event loop, soon.
  void end_later(Status why);
  // Runs `sent` from the event loop, soon; at the latest when the connection ends.
  void finish(Sent sent, Status status);

  // Call the handler. No value, or false, means that the connection is closed: use no member after that.
  std::optional<Placement> place(Bytes frame, std::size_t payload_bytes);
  bool deliver(Incoming incoming);

  // Bytes have arrived. place() and deliver() also record this.
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
  std::optional<Status> unreported_;  // why it ended, until on_closed is called
  std::vector<std::pair<Sent, Status>> finished_;
};

}  // namespace capstan::transport
