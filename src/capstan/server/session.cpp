#include "capstan/server/session.h"

#include <algorithm>

#include <fmt/format.h>

namespace capstan::server {

Session::Session(std::unique_ptr<transport::Connection> connection, const cluster::Token& token,
                 SessionEvents& events)
    : connection_(std::move(connection)), events_(events), handshake_(token) {
  connection_->set_handler(this);
  send(handshake_.challenge());
}

void Session::send(const wire::Message& message) {
  connection_->send(writer_.write(message));
}

void Session::send(const wire::Message& message, std::span<const float> payload, transport::Sent sent) {
  connection_->send(writer_.write(message), std::as_bytes(payload), std::move(sent));
}

void Session::send(const wire::Message& message, const transport::Segment& segment) {
  connection_->send(writer_.write(message), segment);
}

bool Session::is_silent(TimePoint now, Duration silence) const {
  const auto limit =
      connection_->is_mid_payload() ? std::max<Duration>(silence, transport::kPayloadPatience) : silence;
  return now - last_heard() > limit;
}

void Session::refuse(const std::string& reason) {
  send(wire::Refused{reason});
  end(Status::refused(reason));
}

void Session::abandon() {
  ended_ = true;
  connection_->close();
}

void Session::end(Status why) {
  if (ended_) return;
  ended_ = true;
  connection_->close();
  events_.on_end(*this, std::move(why));
}

transport::Placement Session::place(transport::Connection&, transport::Bytes frame, std::size_t bytes) {
  if (!trusted_ || !member_) return transport::Placement::refuse();
  const auto message = reader_.peek(frame);
  if (!message) return transport::Placement::refuse();
  return *message ? events_.on_payload(*this, **message, bytes) : transport::Placement::discard();
}

void Session::on_frame(transport::Connection&, transport::Incoming incoming) {
  if (ended_) return;
  auto read = reader_.read(incoming.frame);
  if (!read) return end(read.status());
  if (!*read) return;
  auto& message = **read;
  if (!trusted_) return take_hello(message);
  if (const auto* join = std::get_if<wire::Join>(&message)) {
    if (member_) return end(Status::malformed("a second Join"));
    return events_.on_join(*this, *join);
  }
  if (!member_) return end(Status::malformed(fmt::format("a {} before Join", wire::name_of(message))));
  if (std::holds_alternative<wire::Heartbeat>(message)) return;  // that it came is all
  events_.on_message(*this, {std::move(message), incoming.payload_bytes, std::move(incoming.segment)});
}

void Session::take_hello(const wire::Message& message) {
  const auto* hello = std::get_if<wire::Hello>(&message);
  if (!hello) return end(Status::malformed(fmt::format("a {} before Hello", wire::name_of(message))));
  const auto answer = handshake_.answer(*hello);
  if (!answer) return refuse(answer.status().message());
  trusted_ = true;
  send(*answer);
}

void Session::on_closed(transport::Connection&, Status why) {
  end(std::move(why));
}

}  // namespace capstan::server
