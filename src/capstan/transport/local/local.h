#pragma once

#include <cstdint>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Connections between processes of one host: an AF_UNIX stream in the abstract namespace carries frames
// and payloads, and hands over segments. The name is a port number, so it vanishes with its server and
// keeps to its network namespace.
namespace capstan::transport::local {

// Listens under `port`; 0 picks a free one. Throws UserError where the port is taken.
std::unique_ptr<Listener> listen(EventLoop& loop, std::uint16_t port, Accept accept);

// Connects at once or fails at once: a name without a listener is kUnavailable.
Result<std::unique_ptr<Connection>> connect(EventLoop& loop, std::uint16_t port);

}  // namespace capstan::transport::local
