#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace capstan::checkpoint {

// One thread of lowest priority for long tasks, such as writing files. Tasks run in order. post() and the
// destructor are called on the owner's thread. The destructor waits for the running task and drops the
// others.
class Background {
 public:
  // `deliver`, called on the background thread, runs a function on the owner's thread.
  using Deliver = std::function<void(std::function<void()>)>;
  explicit Background(Deliver deliver);
  ~Background();

  // Runs `task` on the background thread, then `done` on the owner's thread with the message of an exception,
  // empty on success.
  void post(std::function<void()> task, std::function<void(const std::string& error)> done);

 private:
  struct Task {
    std::function<void()> run;
    std::function<void(const std::string&)> done;
  };

  void work();

  const Deliver deliver_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // expires before late deliveries
  std::mutex mutex_;                                            // guards the next two
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace capstan::checkpoint
