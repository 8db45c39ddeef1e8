#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capstan/transport/core.h"

namespace capstan::transport::loopback {

// A payload lent to the receiver's thread. The sender takes it back when it closes; the receiver holds the
// lock during its copy, so that it never reads memory that the caller may reuse.
struct Loan {
  std::mutex mutex;
  Bytes payload;
  bool taken_back = false;  // guarded by mutex
};

struct Message {
  std::vector<std::byte> frame;
  std::shared_ptr<Loan> loan;  // null: no payload
  std::uint64_t sent_id = 0;   // 0: no `sent` callback
  std::optional<Segment> segment;
};

// What both ends share. Thread-safe; each end is used by the thread of its own loop.
class Pipe {
 public:
  enum class Put { kTaken, kFull, kClosed };
  Put put(int to, Message message);
  void notify_sent(int to, std::uint64_t sent_id);
  std::deque<Message> take(int end);
  std::vector<std::uint64_t> take_sent(int end);
  bool is_hung_up(int end);  // the peer closed, and all its messages were taken

  // Attaches `end` to its loop: `on_event` is posted there whenever something arrives. Null detaches it.
  void attach(int end, EventLoop* loop, std::function<void()> on_event);
  // Closes `end`: messages to it are dropped; the other end sees the close after all earlier messages.
  void hang_up(int end);

 private:
  struct End {
    EventLoop* loop = nullptr;
    std::function<void()> on_event;
    bool event_posted = false;
    bool open = true;
    std::deque<Message> inbox;
    std::vector<std::uint64_t> sent;
  };

  void announce(End& end);

  std::mutex mutex_;  // guards what follows
  std::array<End, 2> ends_;
};

// The user's end of a pipe.
std::unique_ptr<Connection> connect_end(EventLoop& loop, std::shared_ptr<Pipe> pipe, int end,
                                        bool shares_memory, const std::string& name);

}  // namespace capstan::transport::loopback
