#pragma once

#include <cstdint>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Connections between processes of one host: an AF_UNIX stream in the abstract namespace carries frames,
// payloads and segments. Its name contains a port number; it disappears with its server and is visible in its
// network namespace only.
namespace capstan::transport::local {

// Listens under `port`; 0 picks a free one. Throws UserError if the port is in use.
std::unique_ptr<Listener> listen(EventLoop& loop, std::uint16_t port, Accept accept);

// Connects or fails at once: kUnavailable without a listener.
Result<std::unique_ptr<Connection>> connect(EventLoop& loop, std::uint16_t port);

}  // namespace capstan::transport::local
