#include "capstan/transport/event_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "capstan/base/check.h"
#include "capstan/base/cores.h"
#include "capstan/user_error.h"

namespace capstan::transport {
namespace {

using std::chrono::nanoseconds;

constexpr int kEventsPerBatch = 64;
// The loop polls for this long before it sleeps: the answer of a fast peer does not cost a sleep and a
// wake-up (some 30 to 60 us).
constexpr Duration kSpin = std::chrono::microseconds(50);
// Limits sleeps, so that no sum of durations overflows.
constexpr Duration kLongestSleep = std::chrono::hours(1);

constexpr std::uint64_t kWakeKey = 0;
constexpr std::uint64_t kPollerKey = 1;

std::uint64_t make_key(std::uint32_t generation, int fd) {
  return (std::uint64_t{generation} << 32) | static_cast<std::uint32_t>(fd);
}

bool control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

EventLoop::EventLoop(Now now)
    : now_(std::move(now)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_ || !control(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWakeKey)) {
    throw UserError("cannot create an event loop: " + std::string(std::strerror(errno)) +
                    "; the limit of open files (ulimit -n) may be too low");
  }
}

EventLoop::~EventLoop() = default;

void EventLoop::watch(int fd, std::uint32_t epoll_events, FdCallback callback) {
  if (next_generation_ == 0) next_generation_ = 1;
  auto watch = std::make_shared<Watch>(Watch{make_key(next_generation_++, fd), std::move(callback)});
  const bool added = control(epoll_.get(), EPOLL_CTL_ADD, fd, epoll_events, watch->key);
  CAPSTAN_CHECK(added, "a watched descriptor is open and not watched yet");
  watches_[fd] = std::move(watch);
}

void EventLoop::change(int fd, std::uint32_t epoll_events) {
  const auto found = watches_.find(fd);
  CAPSTAN_CHECK(found != watches_.end(), "only a watched descriptor changes its events");
  control(epoll_.get(), EPOLL_CTL_MOD, fd, epoll_events, found->second->key);
}

void EventLoop::unwatch(int fd) {
  if (watches_.erase(fd) != 0) control(epoll_.get(), EPOLL_CTL_DEL, fd, 0, 0);
}

void EventLoop::add_poller(Poller* poller, int fd) {
  pollers_.push_back(poller);
  const bool added = control(epoll_.get(), EPOLL_CTL_ADD, fd, EPOLLIN, kPollerKey);
  CAPSTAN_CHECK(added, "a poller's descriptor is open and not watched yet");
}

void EventLoop::remove_poller(Poller* poller, int fd) {
  std::erase(pollers_, poller);
  control(epoll_.get(), EPOLL_CTL_DEL, fd, 0, 0);
}

EventLoop::TimerId EventLoop::call_at(TimePoint when, Callback callback) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(callback));
  timer_times_.emplace(id, when);
  return id;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

void EventLoop::post(Callback callback) {
  bool needs_wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(callback));
    needs_wake = std::exchange(asleep_, false);
  }
  if (needs_wake) wake();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
}

bool EventLoop::run_once(TimePoint deadline) {
  bool ran = run_posted();
  ran |= run_timers();
  ran |= run_pollers();
  if (!ran) ran = spin(deadline);
  if (ran) {
    run_events(Duration::zero());
    last_work_ = now();
    return true;
  }

  TimePoint time = now();
  while (!arm_pollers() && time < deadline) {
    ::sched_yield();
    if (run_pollers()) {
      last_work_ = now();
      return true;
    }
    time = now();
  }
  Duration timeout = deadline > time ? std::min(deadline - time, kLongestSleep) : Duration::zero();
  if (!timers_.empty()) timeout = std::min(timeout, timers_.begin()->first.first - time);
  ran = run_events(timeout);
  ran |= run_posted();
  ran |= run_timers();
  ran |= run_pollers();
  if (ran) last_work_ = now();
  return ran;
}

std::optional<Duration> EventLoop::prepare_sleep() {
  if (!arm_pollers()) return {};
  const TimePoint time = now();
  sleep_until_ = time + kLongestSleep;
  if (!timers_.empty()) sleep_until_ = std::min(sleep_until_, timers_.begin()->first.first);
  if (sleep_until_ <= time || !begin_sleep()) return {};
  return sleep_until_ - time;
}

void EventLoop::sleep(Duration timeout) {
  const auto left = std::chrono::duration_cast<nanoseconds>(timeout).count();
  const timespec precise{left / 1'000'000'000, left % 1'000'000'000};
  pollfd ready{epoll_.get(), POLLIN, 0};
  ::ppoll(&ready, 1, &precise, nullptr);
  end_sleep();
}

bool EventLoop::needs_wake() const {
  return !pollers_.empty() || (!timers_.empty() && timers_.begin()->first.first < sleep_until_);
}

bool EventLoop::run_posted() {
  std::vector<Callback> ready;
  {
    const std::lock_guard lock(mutex_);
    if (posted_.empty()) return false;
    ready.swap(posted_);  // functions that these post run in the next round: no starvation
  }
  for (auto& callback : ready) {
    callback();
    callback = nullptr;  // destroys its captures before the next one runs
  }
  return true;
}

bool EventLoop::run_timers() {
  if (timers_.empty()) return false;
  const TimePoint time = now();
  const TimerId newest = next_timer_;  // timers that these start run in the next round
  bool ran = false;
  for (auto first = timers_.begin(); first != timers_.end() && first->first.first <= time;) {
    if (first->first.second >= newest) {
      ++first;
      continue;
    }
    timer_times_.erase(first->first.second);
    auto node = timers_.extract(first);
    node.mapped()();
    ran = true;
    first = timers_.begin();
  }
  return ran;
}

bool EventLoop::run_pollers() {
  bool worked = false;
  for (std::size_t i = 0; i < pollers_.size(); ++i) worked |= pollers_[i]->progress();
  return worked;
}

bool EventLoop::arm_pollers() {
  for (auto* poller : pollers_) {
    if (!poller->arm()) return false;
  }
  return true;
}

void EventLoop::allow_spinning(unsigned processes) {
  spin_ = processes <= usable_cores() ? kSpin : Duration::zero();
}

bool EventLoop::spin(TimePoint deadline) {
  if (spin_ == Duration::zero()) return false;
  const TimePoint until = std::min(deadline, last_work_ + spin_);
  while (now() < until) {
    if (run_posted() || run_pollers() || run_events(Duration::zero())) return true;
  }
  return false;
}

bool EventLoop::run_events(Duration timeout) {
  std::array<epoll_event, kEventsPerBatch> events;
  const bool sleeps = timeout > Duration::zero() && begin_sleep();
  const int count = wait(events.data(), kEventsPerBatch, sleeps ? timeout : Duration::zero());
  if (sleeps) end_sleep();
  bool ran = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
    if (key == kPollerKey) continue;  // only ends the sleep; progress() follows
    if (key == kWakeKey) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &ignored, sizeof(ignored));
      continue;
    }
    const auto found = watches_.find(static_cast<int>(static_cast<std::uint32_t>(key)));
    if (found == watches_.end() || found->second->key != key) continue;  // unwatched since it was fetched
    const auto watch = found->second;                                    // the callback may unwatch it
    watch->callback(events[static_cast<std::size_t>(i)].events);
    ran = true;
  }
  return ran;
}

int EventLoop::wait(epoll_event* events, int capacity, Duration timeout) const {
  const auto left = std::chrono::duration_cast<nanoseconds>(timeout).count();
  if (left <= 0) return ::epoll_wait(epoll_.get(), events, capacity, 0);
  const timespec precise{left / 1'000'000'000, left % 1'000'000'000};
  const int count = ::epoll_pwait2(epoll_.get(), events, capacity, &precise, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  return ::epoll_wait(epoll_.get(), events, capacity, static_cast<int>((left + 999'999) / 1'000'000));
}

// False if a function was posted meanwhile.
bool EventLoop::begin_sleep() {
  const std::lock_guard lock(mutex_);
  asleep_ = posted_.empty();
  return asleep_;
}

void EventLoop::end_sleep() {
  const std::lock_guard lock(mutex_);
  asleep_ = false;
}

}  // namespace capstan::transport
