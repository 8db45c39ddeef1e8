#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capstan/job/environment.h"
#include "capstan/launch/processes.h"
#include "support/eventually.h"

// Fakes of the terminal, signals, clock and processes of a job.
namespace capstan::job {

using testing::kTestTimeout;

// Thread-safe.
class FakeStop final : public StopToken {
 public:
  int requests() override {
    ++polls_;
    return requests_;
  }
  void request() { ++requests_; }
  int polls() const { return polls_; }  // number of calls of requests()

 private:
  std::atomic<int> requests_ = 0, polls_ = 0;
};

// Thread-safe.
class FakeClock {
 public:
  Now now() {
    return [this] { return TimePoint() + std::chrono::hours(1) + std::chrono::milliseconds(passed_); };
  }
  void advance(std::chrono::milliseconds time) { passed_ += time.count(); }

 private:
  std::atomic<std::int64_t> passed_ = 0;
};

// Records all events. Thread-safe.
class RecordedEvents final : public Events {
 public:
  void message(const std::string& line) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(line);
    said_.notify_all();
  }
  void progress(const Progress& progress) override {
    const std::lock_guard lock(mutex_);
    progress_.push_back(progress);
  }
  void evaluated(const EvaluationRecord& record) override {
    const std::lock_guard lock(mutex_);
    evaluations_.push_back(record);
    said_.notify_all();
  }

  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  std::vector<EvaluationRecord> evaluations() const {
    const std::lock_guard lock(mutex_);
    return evaluations_;
  }
  std::vector<Progress> reports() const {
    const std::lock_guard lock(mutex_);
    return progress_;
  }
  bool await_message(const std::string& text) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, kTestTimeout, [&] {
      for (const auto& line : messages_)
        if (line.find(text) != std::string::npos) return true;
      return false;
    });
  }
  bool await_evaluations(std::size_t count) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, kTestTimeout, [&] { return evaluations_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable said_;
  std::vector<std::string> messages_;
  std::vector<Progress> progress_;
  std::vector<EvaluationRecord> evaluations_;
};

// Processes that the test ends. Thread-safe.
class FakeProcesses final : public launch::Processes {
 public:
  std::vector<Ended> reap() override {
    const std::lock_guard lock(mutex_);
    ++polls_;
    polled_.notify_all();
    return std::exchange(ended_, {});
  }
  void kill_worker(std::size_t rank) override {
    const std::lock_guard lock(mutex_);
    killed_.insert(rank);
  }
  void wait(TimePoint) override {
    const std::lock_guard lock(mutex_);
    awaited_ = true;
  }

  void end(const Ended& ended) {
    const std::lock_guard lock(mutex_);
    ended_.push_back(ended);
  }
  std::set<std::size_t> killed() const {
    const std::lock_guard lock(mutex_);
    return killed_;
  }
  bool awaited() const {  // they were given time to end by themselves
    const std::lock_guard lock(mutex_);
    return awaited_;
  }
  // Waits until the supervisor has polled `count` times.
  // Two polls from now: what ended before this call has been handled.
  bool await_polls() {
    std::unique_lock lock(mutex_);
    const auto enough = polls_ + 2;
    return polled_.wait_for(lock, kTestTimeout, [&] { return polls_ >= enough; });
  }
  bool await_polls(int count) {
    std::unique_lock lock(mutex_);
    return polled_.wait_for(lock, kTestTimeout, [&] { return polls_ >= count; });
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable polled_;
  int polls_ = 0;
  bool awaited_ = false;
  std::vector<Ended> ended_;
  std::set<std::size_t> killed_;
};

}  // namespace capstan::job
