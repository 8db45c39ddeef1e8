#include "capstan/averaging/executor.h"

#include <exception>
#include <utility>

#include "capstan/kernels/denormals.h"
#include "capstan/user_error.h"

namespace capstan::averaging {

Executor::Executor(transport::EventLoop& loop, Rule& rule, unsigned threads, std::size_t inline_elements)
    : loop_(loop),
      rule_(rule),
      inline_elements_(inline_elements),
      self_(std::make_shared<Executor*>(this)),
      helpers_(threads > 1 ? threads - 1 : 0),
      thread_(1) {
  // As on the pools' threads: results must not depend on the thread.
  kernels::flush_denormals_on_this_thread();
}

void Executor::run(const Operation& operation, Done done) {
  queue_.push_back({operation, std::move(done)});
  pump();
}

bool Executor::is_short(const Operation& operation) const {
  const auto& slot = *operation.slot;
  const bool is_last = operation.arrival == slot.trainers();
  const auto elements =
      rule_.work(slot, operation.arrival) + (is_last ? slot.elements() * slot.trainers() : 0);
  return elements <= inline_elements_;
}

Executor::Outcome Executor::execute(const Operation& operation) {
  Outcome outcome;
  auto& slot = *operation.slot;
  try {
    slot.arrive(operation.batch, operation.arrival == 1);
    rule_.process_gradient(slot, operation.trainer, operation.gradient);
    if (!slot.is_complete()) return outcome;
    const auto begin = SteadyClock::now();
    rule_.average(slot);
    outcome.averaging = SteadyClock::now() - begin;
  } catch (const UserError& error) {
    outcome = {{}, error.what(), true};
  } catch (const std::exception& error) {
    outcome.error = *error.what() ? error.what() : "an exception without a message";
  } catch (...) {
    outcome.error = "an exception of an unknown type";
  }
  return outcome;
}

void Executor::pump() {
  if (pumping_) return;  // called from a callback below, whose loop takes the new work
  pumping_ = true;
  while (!busy_ && !queue_.empty()) {
    auto next = std::move(queue_.front());
    queue_.pop_front();
    if (is_short(next.operation)) {
      next.done(execute(next.operation));
      continue;
    }
    busy_ = true;
    const auto shared = std::make_shared<std::pair<Queued, Outcome>>(std::move(next), Outcome{});
    thread_.run(
        1, [this, shared](std::size_t) { shared->second = execute(shared->first.operation); },
        [&loop = loop_, self = std::weak_ptr(self_), shared] {
          loop.post([self, shared] {
            const auto alive = self.lock();
            if (!alive) return;
            (*alive)->busy_ = false;
            shared->first.done(shared->second);
            (*alive)->pump();
          });
        });
  }
  pumping_ = false;
}

}  // namespace capstan::averaging
