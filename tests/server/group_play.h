#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "capstan/server/coordinator.h"
#include "server/groups.h"

// A coordinator whose orders are text, and workers that a test drives.
namespace capstan::server {

using Texts = std::vector<std::string>;

// "apply 1/3 at 2: 0#4" is version 4 of group 1, made of worker 0's fourth push at the learning rate of the
// job's version 2.
inline std::string text(const Order& order) {
  if (const auto* apply = std::get_if<wire::ApplyOrder>(&order)) {
    auto out = fmt::format("apply {}/{} at {}:", apply->group, apply->before.value, apply->scheduled.value);
    for (const auto& c : apply->contributions) out += fmt::format(" {}#{}", c.worker.value, c.sequence.value);
    return out;
  }
  if (const auto* drop = std::get_if<wire::DropOrder>(&order))
    return fmt::format("drop {}: {}#{}", drop->group, drop->worker.value, drop->sequence.value);
  if (const auto* deliver = std::get_if<wire::DeliverOrder>(&order))
    return fmt::format("{} {} v{} in {}{}",
                       deliver->member.role == wire::Role::kWorker ? "deliver" : "observer",
                       deliver->member.index, deliver->reply.version.value, deliver->reply.applied.value,
                       deliver->reply.stop ? " stop" : "");
  return "accumulate";
}

// A leader of one server with workers that the test drives.
class Play {
 public:
  explicit Play(const std::string& strategy, std::uint32_t workers = 2, std::uint64_t max_steps = 0,
                std::uint32_t phases = 1)
      : coordinator_({strategy, workers, 1, max_steps}),
        sequence_(workers),
        incarnation_(workers),
        version_(workers) {
    coordinator_.set_groups(testing::groups_of(strategy, workers, phases));
  }

  Coordinator& coordinator() { return coordinator_; }
  int settled() const { return settled_; }

  void begin() {
    for (std::uint32_t w = 0; w < sequence_.size(); ++w) come(w);
    note(coordinator_.initialized(ServerId{0}, kNow));
    (void)take();
  }
  Texts come(std::uint32_t w, std::uint64_t incarnation = 0) {
    incarnation_[w] = incarnation > 0 ? incarnation : 100 * (w + 1);
    EXPECT_TRUE(coordinator_.admit(wire::Role::kWorker, w, {incarnation_[w]}));
    return pull(w);
  }
  Texts pull(std::uint32_t w) {
    note(coordinator_.pull({wire::Role::kWorker, w}, {1000, {}}, kNow));
    return take();
  }
  // A new process begins to count again.
  void reset_sequence(std::uint32_t w) { sequence_[w] = 0; }
  Texts push(std::uint32_t w, float loss = 1) { return push_number(w, ++sequence_[w], loss); }
  Texts push_number(std::uint32_t w, std::uint64_t sequence, float loss = 1) {
    sequence_[w] = sequence;
    note(coordinator_.pushed({{w}, {incarnation_[w]}, {sequence}, {sequence}, version_[w], 8, loss}, kNow));
    return take();
  }
  // The version that the worker's next push reports as its base.
  void reads(std::uint32_t w, std::uint64_t version) { version_[w] = {version}; }
  Texts lose(std::uint32_t w) {
    note(coordinator_.member_ended({wire::Role::kWorker, w}, true, kNow));
    return take();
  }
  Texts stop() {
    note(coordinator_.stop(kNow));
    return take();
  }
  Texts observe(std::uint64_t at_least) {
    note(coordinator_.pull({wire::Role::kObserver, 0}, {1, {at_least}}, kNow));
    return take();
  }

 private:
  static constexpr TimePoint kNow{};  // no strategy here depends on the time

  void note(const Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* order = std::get_if<Order>(&action)) orders_.push_back(text(*order));
      if (std::holds_alternative<UpdatesOrdered>(action)) ++settled_;
    }
  }
  Texts take() { return std::exchange(orders_, {}); }

  Coordinator coordinator_;
  Texts orders_;
  int settled_ = 0;
  std::vector<std::uint64_t> sequence_, incarnation_;
  std::vector<Version> version_;
};

}  // namespace capstan::server
