#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace capstan::server {

// Threads that divide the pieces of one job among them, one job at a time. Call run() from one thread only.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();

  // Calls piece(i) for every i below `pieces`, on any thread, then done() on the thread that finishes last.
  // Returns at once; call it again only after done().
  void run(std::size_t pieces, std::function<void(std::size_t)> piece, std::function<void()> done);
  // The same, but the calling thread takes part, and returns when all pieces are done. It does not wait for
  // threads that have no piece: on a busy machine they may wake late.
  void run_with_caller(std::size_t pieces, std::function<void(std::size_t)> piece);

 private:
  struct Job {
    std::size_t pieces = 0;
    std::function<void(std::size_t)> piece;
    std::function<void()> done;
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> left{0};
  };

  std::shared_ptr<Job> start(std::size_t pieces, std::function<void(std::size_t)> piece,
                             std::function<void()> done);
  void work();
  static void take_part(Job& job);

  std::mutex mutex_;  // guards the four below
  std::condition_variable wake_;
  std::shared_ptr<Job> job_;
  std::size_t number_ = 0;  // of the newest job
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace capstan::server
