#include "capstan/transport/core.h"

#include <utility>

#include "capstan/base/check.h"

namespace capstan::transport {
namespace {

class CoreConnection final : public Connection {
 public:
  explicit CoreConnection(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  CoreConnection(const CoreConnection&) = delete;
  CoreConnection& operator=(const CoreConnection&) = delete;
  ~CoreConnection() override { core_->detach(); }

  void set_handler(Handler* handler) override { core_->set_handler(handler); }
  void send(Bytes frame) override { core_->send({frame, {}, nullptr, nullptr}); }
  void send(Bytes frame, Bytes payload, Sent sent) override {
    core_->send({frame, payload, std::move(sent), nullptr});
  }
  void send(Bytes frame, const Segment& segment) override { core_->send({frame, {}, nullptr, &segment}); }
  bool shares_memory() const override { return core_->shares_memory(); }
  void close() override { core_->close(); }
  bool is_open() const override { return core_->is_open(); }
  TimePoint last_arrival() const override { return core_->last_arrival(); }
  bool is_mid_payload() const override { return core_->is_mid_payload(); }
  std::string peer() const override { return core_->peer(); }
  const char* kind() const override { return core_->kind(); }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<Connection> Core::make_connection(const std::shared_ptr<Core>& core) {
  auto connection = std::make_unique<CoreConnection>(core);
  core->outer_ = connection.get();
  return connection;
}

void Core::set_handler(Handler* handler) {
  handler_ = handler;
  if (handler_ == nullptr) return;
  if (open_) {
    start();
  } else if (unreported_) {
    loop_.post([self = shared_from_this()] { self->report_closed(); });
  }
}

void Core::send(Outgoing message) {
  if (!is_open()) {
    if (message.sent) finish(std::move(message.sent), Status::closed("the connection is closed"));
    return;
  }
  CAPSTAN_CHECK(message.segment == nullptr || shares_memory(),
                "segments are sent only where memory is shared");
  if (message.frame.size() <= kMaxFrameBytes && message.payload.size() <= kMaxPayloadBytes) {
    transmit(std::move(message));
    return;
  }
  auto why = Status::refused("a message to " + peer() + " is too long: frame " +
                             std::to_string(message.frame.size()) + " bytes (at most " +
                             std::to_string(kMaxFrameBytes) + "), payload " +
                             std::to_string(message.payload.size()));
  if (message.sent) finish(std::move(message.sent), why);
  end_later(std::move(why));
}

void Core::close() {
  const auto self = shared_from_this();
  if (!open_) {
    unreported_.reset();
    return run_finished();
  }
  stop(Status::closed("the connection was closed on this side"));
}

void Core::detach() {
  const auto self = shared_from_this();
  close();
  outer_ = nullptr;
  handler_ = nullptr;
  run_finished();
}

void Core::end(const Status& why) {
  if (!open_) return;
  const auto self = shared_from_this();
  unreported_ = why;  // before the callbacks of stop(), one of which may call close()
  stop(why);
  report_closed();
}

void Core::end_later(Status why) {
  if (!is_open()) return;
  failing_ = true;
  loop_.post([self = shared_from_this(), why = std::move(why)] { self->end(why); });
}

void Core::finish(Sent sent, Status status) {
  if (finished_.empty()) loop_.post([self = shared_from_this()] { self->run_finished(); });
  finished_.emplace_back(std::move(sent), std::move(status));
}

std::optional<Placement> Core::place(Bytes frame, std::size_t payload_bytes) {
  note_arrival();
  const Placement placement = handler_->place(*outer_, frame, payload_bytes);
  if (!is_open()) return std::nullopt;
  if (placement.action == Placement::Action::kRefuse) {
    end(Status::malformed("an unexpected payload of " + std::to_string(payload_bytes) + " bytes from " +
                          peer()));
    return std::nullopt;
  }
  CAPSTAN_CHECK(
      placement.action == Placement::Action::kDiscard || placement.destination.size() == payload_bytes,
      "a destination has the payload's size");
  return placement;
}

bool Core::deliver(Incoming incoming) {
  note_arrival();
  handler_->on_frame(*outer_, std::move(incoming));
  return is_open();
}

void Core::stop(const Status& why) {
  open_ = false;
  std::vector<Sent> unsent;
  shut_down(unsent);
  run_finished();
  for (auto& sent : unsent) {
    if (sent) sent(why);
  }
}

void Core::run_finished() {
  const auto finished = std::exchange(finished_, {});
  for (const auto& [sent, status] : finished) sent(status);
}

void Core::report_closed() {
  if (!unreported_ || handler_ == nullptr || outer_ == nullptr) return;
  const Status why = *std::exchange(unreported_, std::nullopt);
  handler_->on_closed(*outer_, why);
}

}  // namespace capstan::transport
