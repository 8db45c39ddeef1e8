#include "capstan/transport/loopback/pipe.h"

#include <cstring>
#include <map>
#include <utility>

namespace capstan::transport::loopback {

Pipe::Put Pipe::put(int to, Message message) {
  const std::lock_guard lock(mutex_);
  End& end = ends_[static_cast<std::size_t>(to)];
  if (!end.open) return Put::kClosed;
  if (end.inbox.size() >= kMaxQueuedMessages) return Put::kFull;
  end.inbox.push_back(std::move(message));
  announce(end);
  return Put::kTaken;
}

void Pipe::notify_sent(int to, std::uint64_t sent_id) {
  const std::lock_guard lock(mutex_);
  End& end = ends_[static_cast<std::size_t>(to)];
  if (!end.open) return;
  end.sent.push_back(sent_id);
  announce(end);
}

std::deque<Message> Pipe::take(int end) {
  const std::lock_guard lock(mutex_);
  return std::exchange(ends_[static_cast<std::size_t>(end)].inbox, {});
}

std::vector<std::uint64_t> Pipe::take_sent(int end) {
  const std::lock_guard lock(mutex_);
  ends_[static_cast<std::size_t>(end)].event_posted = false;
  return std::exchange(ends_[static_cast<std::size_t>(end)].sent, {});
}

bool Pipe::is_hung_up(int end) {
  const std::lock_guard lock(mutex_);
  return !ends_[static_cast<std::size_t>(1 - end)].open && ends_[static_cast<std::size_t>(end)].inbox.empty();
}

void Pipe::attach(int end, EventLoop* loop, std::function<void()> on_event) {
  const std::lock_guard lock(mutex_);
  End& mine = ends_[static_cast<std::size_t>(end)];
  mine.loop = loop;
  mine.on_event = std::move(on_event);
  mine.event_posted = false;
  if (!mine.inbox.empty() || !ends_[static_cast<std::size_t>(1 - end)].open) announce(mine);
}

void Pipe::hang_up(int end) {
  std::deque<Message> dropped;  // destroyed after the lock is released: segments are unmapped without it
  const std::lock_guard lock(mutex_);
  End& mine = ends_[static_cast<std::size_t>(end)];
  mine.open = false;
  mine.loop = nullptr;
  mine.on_event = nullptr;
  dropped.swap(mine.inbox);
  announce(ends_[static_cast<std::size_t>(1 - end)]);
}

void Pipe::announce(End& end) {
  if (end.loop == nullptr || end.event_posted) return;
  end.event_posted = true;
  end.loop->post(end.on_event);  // under the lock: the loop exists until hang_up()
}

namespace {

class LoopbackCore final : public Core {
 public:
  LoopbackCore(EventLoop& event_loop, std::shared_ptr<Pipe> pipe, int end, bool shares, std::string name)
      : Core(event_loop), pipe_(std::move(pipe)), end_(end), shares_memory_(shares), name_(std::move(name)) {}

  bool is_mid_payload() const override { return false; }  // payloads are copied at once
  bool shares_memory() const override { return shares_memory_; }
  std::string peer() const override { return "loopback:" + name_; }
  const char* kind() const override { return "loopback"; }

 protected:
  // Before this, messages are queued in the pipe.
  void start() override {
    pipe_->attach(end_, &loop(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) static_cast<LoopbackCore&>(*self).on_event();
    });
  }
  void transmit(Outgoing message) override;
  void shut_down(std::vector<Sent>& unsent) override;

 private:
  struct Pending {
    std::shared_ptr<Loan> loan;
    Sent sent;
  };

  void on_event();
  void run_sent();
  bool receive(Message& message);
  bool receive_payload(Message& message, Incoming& incoming);

  const std::shared_ptr<Pipe> pipe_;
  const int end_;
  const bool shares_memory_;
  const std::string name_;
  std::map<std::uint64_t, Pending> pending_;  // by sent_id
  std::uint64_t next_sent_id_ = 1;
};

void LoopbackCore::transmit(Outgoing outgoing) {
  Message message;
  message.frame.assign(outgoing.frame.begin(), outgoing.frame.end());
  if (outgoing.segment != nullptr) {
    auto mapped = outgoing.segment->map_again();
    if (!mapped) return end_later(mapped.status());
    message.segment = std::move(*mapped);
  }
  if (outgoing.payload.empty()) {
    if (outgoing.sent) finish(std::move(outgoing.sent), Status::ok());
  } else {
    message.loan = std::make_shared<Loan>();
    message.loan->payload = outgoing.payload;
    message.sent_id = next_sent_id_++;
    pending_.emplace(message.sent_id, Pending{message.loan, std::move(outgoing.sent)});
  }
  // on_event() detects a closed peer, after everything that it sent.
  if (pipe_->put(1 - end_, std::move(message)) == Pipe::Put::kFull) {
    end_later(Status::unavailable(
        peer() + " does not read its messages: " + std::to_string(kMaxQueuedMessages) + " are queued"));
  }
}

void LoopbackCore::on_event() {
  const auto self = shared_from_this();
  run_sent();
  if (!is_open() || !has_handler()) return;
  for (auto& message : pipe_->take(end_)) {
    if (!receive(message)) return;
  }
  if (pipe_->is_hung_up(end_)) end(Status::closed(peer() + " closed the connection"));
}

void LoopbackCore::run_sent() {
  for (const auto id : pipe_->take_sent(end_)) {
    auto node = pending_.extract(id);
    if (!node.empty() && node.mapped().sent) node.mapped().sent(Status::ok());
  }
}

bool LoopbackCore::receive(Message& message) {
  Incoming incoming;
  incoming.frame = message.frame;
  incoming.segment = std::move(message.segment);
  if (message.loan != nullptr && !receive_payload(message, incoming)) return false;
  return deliver(std::move(incoming));
}

bool LoopbackCore::receive_payload(Message& message, Incoming& incoming) {
  incoming.payload_bytes = message.loan->payload.size();
  const auto placement = place(message.frame, incoming.payload_bytes);
  if (!placement) return false;
  bool taken_back = false;
  {
    const std::lock_guard lock(message.loan->mutex);
    taken_back = message.loan->taken_back;
    if (!taken_back && placement->action == Placement::Action::kReceive) {
      std::memcpy(placement->destination.data(), message.loan->payload.data(), incoming.payload_bytes);
    }
  }
  if (taken_back) {
    end(Status::closed(peer() + " closed the connection in the middle of a payload"));
    return false;
  }
  pipe_->notify_sent(1 - end_, message.sent_id);
  return true;
}

void LoopbackCore::shut_down(std::vector<Sent>& unsent) {
  pipe_->hang_up(end_);
  for (auto& [id, pending] : pending_) {
    {
      const std::lock_guard lock(pending.loan->mutex);
      pending.loan->taken_back = true;
    }
    if (pending.sent) unsent.push_back(std::move(pending.sent));
  }
  pending_.clear();
}

}  // namespace

std::unique_ptr<Connection> connect_end(EventLoop& loop, std::shared_ptr<Pipe> pipe, int end,
                                        bool shares_memory, const std::string& name) {
  return Core::make_connection(
      std::make_shared<LoopbackCore>(loop, std::move(pipe), end, shares_memory, name));
}

}  // namespace capstan::transport::loopback
