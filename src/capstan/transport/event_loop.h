#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

struct epoll_event;

namespace capstan::transport {

// A source of work with a progress call in addition to its file descriptor (UCX).
class Poller {
 public:
  virtual ~Poller() = default;
  virtual bool progress() = 0;  // does what can be done now; true if there was any work
  virtual bool arm() = 0;       // true: sleeping on fd() is safe; false: progress again first
};

// epoll with timers and posted functions. All calls except post(), wake() and sleep() are made on the thread
// that runs the loop, or under a lock of its users.
class EventLoop {
 public:
  using Callback = std::function<void()>;
  using FdCallback = std::function<void(std::uint32_t epoll_events)>;
  using TimerId = std::uint64_t;
  using Now = std::function<TimePoint()>;

  // `now` is the clock of timers, deadlines and everything on the loop; tests pass a fake clock.
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

  // `processes`: busy processes on this machine. If each has a core to itself, the loop polls for a moment
  // before it sleeps; otherwise, and by default, it never busy-waits.
  void allow_spinning(unsigned processes);

  // Runs what is ready; sleeps until something is ready or until the deadline (a deadline in the past never
  // sleeps). True if anything ran.
  bool run_once(TimePoint deadline);

  // The two halves of a sleep, for a thread that releases a lock on the loop while it sleeps. prepare_sleep()
  // returns how long to sleep, or none if something may be ready. sleep() runs nothing.
  std::optional<Duration> prepare_sleep();
  void sleep(Duration timeout);
  // True if a thread that sleeps after prepare_sleep() would miss what was added since: call wake().
  bool needs_wake() const;

 private:
  struct Watch {
    std::uint64_t key;  // returned by epoll; differs from that of an earlier watch of the same descriptor
    FdCallback callback;
  };

  bool run_posted();
  bool run_timers();
  bool run_pollers();
  bool arm_pollers();
  bool spin(TimePoint deadline);
  bool run_events(Duration timeout);
  int wait(epoll_event* events, int capacity, Duration timeout) const;
  bool begin_sleep();
  void end_sleep();

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
  TimePoint sleep_until_ = TimePoint::min();

  std::mutex mutex_;  // guards what follows
  std::vector<Callback> posted_;
  bool asleep_ = false;  // a post then needs a wake
};

}  // namespace capstan::transport
