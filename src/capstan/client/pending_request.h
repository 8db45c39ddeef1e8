#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "capstan/wire/messages.h"

namespace capstan::client {

// A worker's request for weights, made by a push or a pull, and the servers' answers to it. Answers to any
// other request do not count. Not thread-safe.
class PendingRequest {
 public:
  explicit PendingRequest(std::size_t servers) : answered_(servers) {}

  // The request's number is the push's sequence number.
  void begin(const wire::Push& push) {
    push_ = push;
    expect(push.sequence.value);
  }
  // A request without a push; returns its number.
  std::uint64_t begin_pull() {
    push_.reset();
    return renumber();
  }
  // Gives the request a new number: all servers must answer again. Returns the number.
  std::uint64_t renumber() {
    expect(kPulls + ++pulls_);
    return number_;
  }
  void cancel() { waiting_ = false; }

  bool is_waiting() const { return waiting_; }
  const std::optional<wire::Push>& push() const { return push_; }
  // Whether an answer of this server with this number counts.
  bool expects(std::size_t server, std::uint64_t number) const {
    return waiting_ && number == number_ && !answered_[server];
  }
  // The answer, which expects() must have accepted. The first server's describes the update.
  void answer(std::size_t server, const wire::Weights& weights) {
    answered_[server] = true;
    if (server == 0) answer_ = weights;
    waiting_ = !std::ranges::all_of(answered_, std::identity{});
  }
  const wire::Weights& answer() const { return answer_; }

 private:
  // Above all sequence numbers of pushes.
  static constexpr std::uint64_t kPulls = std::uint64_t{1} << 63;

  void expect(std::uint64_t number) {
    number_ = number;
    waiting_ = true;
    std::fill(answered_.begin(), answered_.end(), false);
  }

  std::optional<wire::Push> push_;
  std::uint64_t number_ = 0;
  std::uint64_t pulls_ = 0;
  std::vector<bool> answered_;
  wire::Weights answer_;
  bool waiting_ = false;
};

}  // namespace capstan::client
