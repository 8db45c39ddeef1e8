#include "capstan/cluster/channel.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/text.h"

namespace capstan::cluster {
namespace {

constexpr std::size_t kMaxReasonBytes = 2048;  // of a refusal, which a user reads

}  // namespace

Channel::Channel(Side side, std::unique_ptr<transport::Connection> connection, const Token& token,
                 Events& events)
    : connection_(std::move(connection)), events_(events), handshake_(ClientHandshake(token)) {
  connection_->set_handler(this);
  if (side == Side::kAccepting) send(handshake_.emplace<ServerHandshake>(token).challenge());
}

void Channel::send(const wire::Message& message) {
  connection_->send(writer_.write(message));
}

void Channel::send(const wire::Message& message, std::span<const float> payload, transport::Sent sent) {
  connection_->send(writer_.write(message), std::as_bytes(payload), std::move(sent));
}

void Channel::send(const wire::Message& message, const transport::Segment& segment) {
  connection_->send(writer_.write(message), segment);
}

bool Channel::is_silent(TimePoint now, Duration limit, TimePoint since) const {
  if (connection_->is_mid_payload()) limit = std::max<Duration>(limit, transport::kPayloadTimeout);
  return now - std::max(last_heard(), since) > limit;
}

void Channel::refuse(const std::string& reason) {
  if (has_ended()) return;
  send(wire::Refused{reason});
  end(Status::refused(reason));
}

void Channel::end(Status why) {
  if (has_ended()) return;
  close();
  events_.on_end(*this, std::move(why));
}

void Channel::close() {
  state_ = State::kEnded;
  connection_->close();
}

transport::Placement Channel::place(transport::Connection&, transport::Bytes frame, std::size_t bytes) {
  if (!is_trusted()) return transport::Placement::refuse();
  const auto message = reader_.peek(frame);
  if (!message) return transport::Placement::refuse();
  return *message ? events_.on_payload(*this, **message, bytes) : transport::Placement::discard();
}

void Channel::on_frame(transport::Connection&, transport::Incoming incoming) {
  if (has_ended()) return;
  auto read = reader_.read(incoming.frame);
  if (!read) return end(read.status());
  if (!*read) return;
  auto& message = **read;
  if (const auto* refused = std::get_if<wire::Refused>(&message))
    return end(Status::refused(printable(shortened(refused->reason, kMaxReasonBytes))));
  if (!is_trusted()) return continue_handshake(message);
  if (std::holds_alternative<wire::Heartbeat>(message)) return;  // counted by last_heard()
  events_.on_message(*this, {std::move(message), incoming.payload_bytes, std::move(incoming.segment)});
}

void Channel::continue_handshake(const wire::Message& message) {
  if (const auto* server = std::get_if<ServerHandshake>(&handshake_)) {
    const auto* hello = std::get_if<wire::Hello>(&message);
    if (!hello)
      return end(Status::malformed(fmt::format("received {} instead of Hello", wire::name_of(message))));
    const auto answer = server->answer(*hello);
    if (!answer) return refuse(answer.status().message());
    send(*answer);
    return trust();
  }
  auto& client = std::get<ClientHandshake>(handshake_);
  if (const auto* challenge = std::get_if<wire::Challenge>(&message)) {
    const auto hello = client.answer(*challenge);
    return hello ? send(*hello) : end(hello.status());
  }
  const auto* trusted = std::get_if<wire::Trusted>(&message);
  if (!trusted)
    return end(Status::malformed(fmt::format("received {} instead of Trusted", wire::name_of(message))));
  if (auto bad = client.check(*trusted); !bad.is_ok()) return end(bad);
  trust();
}

void Channel::trust() {
  state_ = State::kTrusted;
  events_.on_trusted(*this);
}

void Channel::on_closed(transport::Connection&, Status why) {
  end(std::move(why));
}

}  // namespace capstan::cluster
