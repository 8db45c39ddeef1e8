#include "capstan/job/stop_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace capstan::job {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);

}  // namespace

StopWatch::StopWatch(const Environment& environment, int handled, int most)
    : thread_([this, &stop = environment.stop, end_at_once = environment.end_at_once, handled,
               most](const std::stop_token& ending) {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::unique_lock lock(mutex);
        while (!ending.stop_requested()) {
          const int requests = stop.requests() - handled;
          if (requests > 0) asked = true;
          if (requests > most + (training ? 1 : 0) && end_at_once) end_at_once();
          ended.wait_for(lock, ending, kPollInterval, [] { return false; });
        }
      }) {}

}  // namespace capstan::job
