#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "capstan/averaging/rules.h"
#include "capstan/base/time.h"
#include "capstan/server/pool.h"
#include "capstan/transport/event_loop.h"

namespace capstan::averaging {

// Calls a rule's functions strictly in sequence: long ones on a thread of its own, so that the event loop
// keeps receiving, short ones at once. Owned by the loop's thread; `done` runs there.
class Executor {
 public:
  // An operation that touches at most this many elements runs on the event thread: waking another thread
  // takes longer.
  static constexpr std::size_t kInlineElements = std::size_t{32} * 1024;

  // One gradient that has arrived; the last one of a batch is followed by the average.
  struct Operation {
    Slot* slot = nullptr;
    std::uint64_t batch = 0;
    std::uint32_t trainer = 0;
    Gradient gradient;
    std::uint32_t arrival = 1;  // its number in the order of arrival
  };
  struct Outcome {
    Duration averaging{};   // time of average()
    std::string error;      // of the rule; empty on success
    bool is_users = false;  // a UserError
  };
  using Done = std::function<void(const Outcome&)>;

  // `threads` take part in the rule's loops.
  Executor(transport::EventLoop& loop, Rule& rule, unsigned threads, std::size_t inline_elements);

  void run(const Operation& operation, Done done);
  std::size_t depth() const { return queue_.size() + (busy_ ? 1 : 0); }  // operations that are not done
  server::Pool& pool() { return helpers_; }                              // for slots

 private:
  struct Queued {
    Operation operation;
    Done done;
  };

  void pump();
  bool is_short(const Operation& operation) const;
  Outcome execute(const Operation& operation);

  transport::EventLoop& loop_;
  Rule& rule_;
  const std::size_t inline_elements_;
  std::deque<Queued> queue_;
  bool busy_ = false;
  bool pumping_ = false;
  std::shared_ptr<Executor*> self_;  // expires with this object, for functions that the thread posts
  server::Pool helpers_;
  server::Pool thread_;  // last: it ends first
};

}  // namespace capstan::averaging
