#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

struct epoll_event;

namespace capstan::transport {

// A source of work that has its own progress call beside its file descriptor (UCX).
class Poller {
 public:
  virtual ~Poller() = default;
  virtual bool progress() = 0;  // does what can be done now; true if anything was
  virtual bool arm() = 0;       // true: sleeping on fd() is safe; false: progress again first
};

// epoll with timers and posted functions. Everything but post() and wake() belongs to the one thread that
// runs it at a time.
class EventLoop {
 public:
  using Callback = std::function<void()>;
  using FdCallback = std::function<void(std::uint32_t epoll_events)>;
  using TimerId = std::uint64_t;
  using Now = std::function<TimePoint()>;

  // Timers, deadlines and all that runs on the loop go by `now`: tests give a clock of their own.
  explicit EventLoop(Now now = SteadyClock::now);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  TimePoint now() const { return now_(); }

  void watch(int fd, std::uint32_t epoll_events, FdCallback callback);
  void change(int fd, std::uint32_t epoll_events);
  void unwatch(int fd);  // its callback does not run again, not even for events already fetched

  void add_poller(Poller* poller, int fd);
  void remove_poller(Poller* poller, int fd);

  TimerId call_at(TimePoint when, Callback callback);
  void cancel(TimerId timer);

  // Runs `callback` on the loop's thread, soon. Thread-safe; also from within the loop.
  void post(Callback callback);
  // Ends a sleeping run_once early. Thread-safe, and safe in a signal handler.
  void wake();

  // How many busy processes share this machine, as far as is known. Where each has a core to itself, the loop
  // looks around for a moment before it sleeps; otherwise (and by default) it never busy-waits.
  void allow_spinning(unsigned processes);

  // Runs what is ready; sleeps until something is, or the deadline (a deadline in the past never sleeps).
  // True if anything ran.
  bool run_once(TimePoint deadline);

 private:
  struct Watch {
    std::uint64_t key;  // what epoll returns: told apart from an earlier watch of the same descriptor
    FdCallback callback;
  };

  bool run_posted();
  bool run_timers();
  bool run_pollers();
  bool arm_pollers();
  bool spin(TimePoint deadline);
  bool run_events(Duration timeout);
  int wait(epoll_event* events, int capacity, Duration timeout) const;
  bool go_to_sleep();
  void get_up();

  const Now now_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::unordered_map<int, std::shared_ptr<Watch>> watches_;
  std::uint32_t next_generation_ = 1;  // 0 marks the loop's own descriptors
  std::map<std::pair<TimePoint, TimerId>, Callback> timers_;
  std::unordered_map<TimerId, TimePoint> timer_times_;
  TimerId next_timer_ = 1;
  std::vector<Poller*> pollers_;
  TimePoint last_work_{};
  Duration spin_{};

  std::mutex mutex_;  // guards what follows
  std::vector<Callback> posted_;
  bool asleep_ = false;  // a post then needs a wake
};

}  // namespace capstan::transport
