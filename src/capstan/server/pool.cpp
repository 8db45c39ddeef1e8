#include "capstan/server/pool.h"

#include <latch>

#include "capstan/kernels/denormals.h"

namespace capstan::server {

Pool::Pool(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Pool::~Pool() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Pool::run(std::size_t pieces, std::function<void(std::size_t)> piece, std::function<void()> done) {
  start(pieces, std::move(piece), std::move(done));
}

void Pool::run_with_caller(std::size_t pieces, std::function<void(std::size_t)> piece) {
  if (threads_.empty() || pieces < 2) {
    for (std::size_t i = 0; i < pieces; ++i) piece(i);
    return;
  }
  // Shared: the thread that finishes last may still be in count_down() when the caller returns.
  const auto all_done = std::make_shared<std::latch>(1);
  const auto job = start(pieces, std::move(piece), [all_done] { all_done->count_down(); });
  take_part(*job);
  all_done->wait();
}

std::shared_ptr<Pool::Job> Pool::start(std::size_t pieces, std::function<void(std::size_t)> piece,
                                       std::function<void()> done) {
  auto job = std::make_shared<Job>();
  job->pieces = pieces;
  job->piece = std::move(piece);
  job->done = std::move(done);
  job->left = pieces;
  {
    const std::scoped_lock lock(mutex_);
    job_ = job;
    ++number_;
  }
  wake_.notify_all();
  return job;
}

void Pool::take_part(Job& job) {
  for (;;) {
    const auto i = job.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= job.pieces) return;
    job.piece(i);
    if (job.left.fetch_sub(1, std::memory_order_acq_rel) == 1) job.done();
  }
}

void Pool::work() {
  kernels::flush_denormals_on_this_thread();
  std::size_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ending_ || number_ != seen; });
    if (ending_) return;
    seen = number_;
    const auto job = job_;  // keeps the job alive for a thread that wakes late
    lock.unlock();
    take_part(*job);
    lock.lock();
  }
}

}  // namespace capstan::server
