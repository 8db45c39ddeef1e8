#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

namespace capstan::simulate {

// Tasks that share the cores and the memory of a machine: while their demand exceeds either, all slow down by
// the same factor. Exact, by virtual time, which advances at the speed of the tasks: a task's end in virtual
// time is known when it begins, whatever other tasks do. Times are in seconds and never decrease. Not
// thread-safe.
class SharedCores {
 public:
  using Task = std::uint32_t;

  SharedCores(double cores, double memory) : cores_(cores), memory_(memory) {}

  // `work` is in seconds on `threads` free cores with a memory traffic of `traffic` bytes/s.
  void begin(Task task, double now, double work, double threads, double traffic) {
    advance(now);
    running_[task] = {virtual_ + work, virtual_, threads, traffic};
    ends_.push_back({virtual_ + work, task});
    std::push_heap(ends_.begin(), ends_.end(), later);
    demand_ += threads;
    traffic_ += traffic;
  }

  // Ends a task, possibly early. Returns the work it has done.
  double end(Task task, double now) {
    advance(now);
    const auto found = running_.find(task);
    const auto entry = found->second;
    running_.erase(found);
    demand_ = running_.empty() ? 0 : demand_ - entry.threads;
    traffic_ = running_.empty() ? 0 : traffic_ - entry.traffic;
    return std::min(virtual_, entry.end) - entry.begin;
  }

  // When the next task ends, and which one.
  double next(double now, Task& task) {
    // Tasks that ended early are still in the heap, possibly twice.
    while (!ends_.empty()) {
      const auto found = running_.find(ends_.front().task);
      if (found != running_.end() && found->second.end == ends_.front().at) break;
      std::pop_heap(ends_.begin(), ends_.end(), later);
      ends_.pop_back();
    }
    if (ends_.empty()) return std::numeric_limits<double>::infinity();
    task = ends_.front().task;
    const double virtual_now = virtual_ + (now - real_) * speed();
    return now + std::max(0.0, ends_.front().at - virtual_now) / speed();
  }

  double done(Task task, double now) {
    advance(now);
    const auto& entry = running_.at(task);
    return std::min(virtual_, entry.end) - entry.begin;
  }

  double busy(double now) {  // core-seconds
    advance(now);
    return busy_;
  }

 private:
  struct Entry {
    double end, begin, threads, traffic;
  };
  struct End {
    double at;
    Task task;
  };
  static bool later(const End& a, const End& b) { return a.at > b.at || (a.at == b.at && a.task > b.task); }

  double speed() const { return 1 / std::max({1.0, demand_ / cores_, traffic_ / memory_}); }
  void advance(double now) {
    virtual_ += (now - real_) * speed();
    busy_ += (now - real_) * std::min(cores_, demand_);
    real_ = now;
  }

  const double cores_, memory_;
  double real_ = 0, virtual_ = 0, demand_ = 0, traffic_ = 0, busy_ = 0;
  std::unordered_map<Task, Entry> running_;
  std::vector<End> ends_;  // a heap
};

}  // namespace capstan::simulate
