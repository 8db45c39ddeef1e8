#include "capstan/server/leader_link.h"

namespace capstan::server {

LeaderLink::LeaderLink(std::unique_ptr<transport::Connection> connection, const cluster::Token& token,
                       Events& events)
    : connection_(std::move(connection)), handshake_(token), events_(events) {
  connection_->set_handler(this);
}

void LeaderLink::send(const wire::Message& message) {
  connection_->send(writer_.write(message));
}

transport::Placement LeaderLink::place(transport::Connection&, transport::Bytes, std::size_t) {
  return transport::Placement::refuse();  // orders have no payload
}

void LeaderLink::on_frame(transport::Connection&, transport::Incoming incoming) {
  const auto read = reader_.read(incoming.frame);
  if (!read) return fail(read.status());
  if (!*read) return;
  const auto& message = **read;
  if (const auto* challenge = std::get_if<wire::Challenge>(&message)) {
    const auto hello = handshake_.answer(*challenge);
    if (!hello) return fail(hello.status());
    return send(*hello);
  }
  if (const auto* trusted = std::get_if<wire::Trusted>(&message)) {
    if (auto bad = handshake_.check(*trusted); !bad.is_ok()) return fail(bad);
    trusted_ = true;
    return send(wire::Join{wire::Role::kServer, {}, {}, {}, {}, {}});
  }
  if (const auto* refused = std::get_if<wire::Refused>(&message))
    return fail(Status::refused(refused->reason));
  if (!trusted_) return fail(Status::malformed("an order before the handshake"));
  if (const auto* joined = std::get_if<wire::Joined>(&message)) return events_.on_leader_joined(*joined);
  if (std::holds_alternative<wire::Heartbeat>(message)) return;
  events_.on_leader_order(message);
}

void LeaderLink::on_closed(transport::Connection&, Status why) {
  fail(std::move(why));
}

void LeaderLink::fail(Status why) {
  if (failed_) return;
  failed_ = true;
  connection_->close();
  events_.on_leader_lost(std::move(why));
}

}  // namespace capstan::server
