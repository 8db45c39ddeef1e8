#include "capstan/transport/faulty/faulty.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "capstan/base/random.h"
#include "capstan/transport/core.h"

namespace capstan::transport::faulty {
namespace {

// The faults of one message.
struct MessageFaults {
  bool drop = false;
  bool duplicate = false;
  bool reorder = false;
  Duration delay{};
};

// Owned by the loop's thread; not thread-safe.
class FaultyCore final : public Core {
 public:
  FaultyCore(EventLoop& event_loop, std::unique_ptr<Connection> inner, const Faults& faults)
      : Core(event_loop), faults_(faults), random_(faults.seed), inlet_(*this), inner_(std::move(inner)) {}

  TimePoint last_arrival() const override { return inner_->last_arrival(); }
  bool is_mid_payload() const override { return inner_->is_mid_payload(); }
  bool shares_memory() const override { return inner_->shares_memory(); }
  std::string peer() const override { return inner_->peer(); }
  const char* kind() const override { return inner_->kind(); }

 protected:
  void start() override { inner_->set_handler(&inlet_); }
  void transmit(Outgoing outgoing) override;
  void shut_down(std::vector<Sent>& unsent) override;

 private:
  // Forwards the events of the inner connection to this one.
  class Inlet final : public Handler {
   public:
    explicit Inlet(FaultyCore& core) : core_(core) {}
    Placement place(Connection&, Bytes frame, std::size_t payload_bytes) override {
      const auto self = core_.shared_from_this();
      // Without a value the inner connection is already closed and ignores the answer.
      return core_.place(frame, payload_bytes).value_or(Placement::discard());
    }
    void on_frame(Connection&, Incoming incoming) override {
      const auto self = core_.shared_from_this();
      if (core_.is_open()) core_.deliver(std::move(incoming));  // place() may have closed it
    }
    void on_closed(Connection&, Status why) override { core_.end(why); }

   private:
    FaultyCore& core_;
  };

  struct Held {
    std::vector<std::byte> frame;
    Bytes payload;
    Sent sent;
    std::optional<Segment> segment;
    TimePoint due;
    bool duplicate = false;
  };

  MessageFaults draw();
  void queue(Held message);
  void release_due();
  void pass(Held message);

  const Faults faults_;
  Random random_;
  std::uint64_t messages_ = 0;
  Inlet inlet_;
  std::unique_ptr<Connection> inner_;
  std::optional<Held> overtaken_;  // sent after the next message
  std::deque<Held> line_;          // in the order of sending, once due
  EventLoop::TimerId timer_ = 0;
};

// Always draws the same number of values, so that a message's faults depend on the seed and its number only.
MessageFaults FaultyCore::draw() {
  MessageFaults drawn;
  drawn.drop = random_.uniform() < faults_.drop;
  drawn.duplicate = random_.uniform() < faults_.duplicate;
  drawn.reorder = random_.uniform() < faults_.reorder;
  const bool delayed = random_.uniform() < faults_.delay;
  const double part = random_.uniform();
  if (delayed) drawn.delay = from_seconds(seconds(faults_.max_delay) * part);
  return drawn;
}

void FaultyCore::transmit(Outgoing outgoing) {
  MessageFaults drawn = draw();
  if (outgoing.segment != nullptr) drawn.drop = drawn.duplicate = drawn.reorder = false;
  const bool cut = ++messages_ == faults_.cut_after;
  if (faults_.count &&
      (cut || drawn.drop || drawn.duplicate || drawn.reorder || drawn.delay > Duration::zero()))
    ++*faults_.count;
  if (drawn.drop) {
    if (outgoing.sent) finish(std::move(outgoing.sent), Status::ok());
  } else {
    Held message;
    message.frame.assign(outgoing.frame.begin(), outgoing.frame.end());
    message.payload = outgoing.payload;
    message.sent = std::move(outgoing.sent);
    message.due = loop().now() + drawn.delay;
    message.duplicate = drawn.duplicate;
    if (outgoing.segment != nullptr) {
      auto mapped = outgoing.segment->map_again();
      if (!mapped) return end_later(mapped.status());
      message.segment = std::move(*mapped);
    }
    if (drawn.reorder && !overtaken_) {
      overtaken_ = std::move(message);
      // If no other message overtakes it, it is sent after max_delay.
      overtaken_->due += faults_.max_delay;
      if (line_.empty()) release_due();
    } else {
      queue(std::move(message));
      if (overtaken_) queue(*std::exchange(overtaken_, std::nullopt));
      release_due();
    }
  }
  if (cut) end_later(Status::closed("cut by the fault plan"));
}

void FaultyCore::queue(Held message) {
  if (line_.size() >= kMaxQueuedMessages) {
    if (message.sent) finish(std::move(message.sent), Status::unavailable("too many messages are queued"));
    return end_later(
        Status::unavailable("the fault plan holds " + std::to_string(line_.size()) + " messages"));
  }
  if (!line_.empty()) message.due = std::max(message.due, line_.back().due);
  line_.push_back(std::move(message));
}

// Sends what is due and sets a timer for the rest.
void FaultyCore::release_due() {
  loop().cancel(timer_);
  const TimePoint now = loop().now();
  while (!line_.empty() && line_.front().due <= now) {
    Held message = std::move(line_.front());
    line_.pop_front();
    pass(std::move(message));
  }
  if (line_.empty() && overtaken_ && overtaken_->due <= now) pass(*std::exchange(overtaken_, std::nullopt));
  if (line_.empty() && !overtaken_) return;
  const TimePoint next = line_.empty() ? overtaken_->due : line_.front().due;
  timer_ = loop().call_at(next, [this] { release_due(); });  // cancelled in shut_down()
}

void FaultyCore::pass(Held message) {
  if (message.segment) return inner_->send(message.frame, *message.segment);
  if (message.payload.empty() && !message.sent) {
    inner_->send(message.frame);
    if (message.duplicate) inner_->send(message.frame);
    return;
  }
  if (!message.duplicate) return inner_->send(message.frame, message.payload, std::move(message.sent));
  // `sent` runs once both copies are sent; a failure of either is reported.
  const auto both = [left = std::make_shared<int>(2), failure = std::make_shared<Status>(),
                     sent = std::move(message.sent)](Status status) {
    if (!status) *failure = std::move(status);
    if (--*left == 0 && sent) sent(*failure);
  };
  inner_->send(message.frame, message.payload, both);
  inner_->send(message.frame, message.payload, both);
}

void FaultyCore::shut_down(std::vector<Sent>& unsent) {
  loop().cancel(timer_);
  // Delayed messages still arrive, unless they use the caller's memory.
  for (auto& message : line_) {
    if (message.sent || !message.payload.empty()) break;
    pass(std::move(message));
  }
  inner_->close();  // runs each `sent` that it was given
  for (auto& message : line_) unsent.push_back(std::move(message.sent));
  if (overtaken_) unsent.push_back(std::move(overtaken_->sent));
  line_.clear();
  overtaken_.reset();
}

}  // namespace

std::unique_ptr<Connection> wrap(EventLoop& loop, std::unique_ptr<Connection> inner, const Faults& faults) {
  return Core::make_connection(std::make_shared<FaultyCore>(loop, std::move(inner), faults));
}

}  // namespace capstan::transport::faulty
