#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace capstan::checkpoint {

// One thread for work that may take long and is in no hurry, such as writing files: it yields to whoever
// computes. Tasks run in turn; post() and the destructor belong to the owner's thread. Destruction waits for
// the task that runs and forgets the rest.
class Background {
 public:
  // `deliver` brings a function to the owner's thread, to be run there; it is called on another thread.
  using Deliver = std::function<void(std::function<void()>)>;
  explicit Background(Deliver deliver);
  ~Background();

  // `task` may throw UserError: `done`, on the owner's thread, gets the message, empty where all went well.
  void post(std::function<void()> task, std::function<void(const std::string& error)> done);

 private:
  struct Task {
    std::function<void()> run;
    std::function<void(const std::string&)> done;
  };

  void work();

  const Deliver deliver_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // gone with this, for what is still to be delivered
  std::mutex mutex_;                 // guards the two below
  std::deque<Task> tasks_;
  bool ending_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace capstan::checkpoint
