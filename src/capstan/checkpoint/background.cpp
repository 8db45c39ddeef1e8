#include "capstan/checkpoint/background.h"

#include <exception>

#include <sys/resource.h>
#include <unistd.h>

namespace capstan::checkpoint {
namespace {

constexpr int kLowestPriority = 19;

}  // namespace

Background::Background(Deliver deliver) : deliver_(std::move(deliver)), thread_([this] { work(); }) {}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    tasks_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

void Background::post(std::function<void()> task, std::function<void(const std::string&)> done) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(task), std::move(done)});
  }
  wake_.notify_one();
}

void Background::work() {
  // On Linux each thread has its own priority. A failure costs speed only.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
      if (ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    std::string error;
    try {
      task.run();
    } catch (const std::exception& failure) {  // a full disk, no memory
      error = failure.what();
    }
    task.run = nullptr;  // destroys its captures
    deliver_([alive = std::weak_ptr(alive_), done = std::move(task.done), error] {
      if (alive.lock()) done(error);
    });
  }
}

}  // namespace capstan::checkpoint
