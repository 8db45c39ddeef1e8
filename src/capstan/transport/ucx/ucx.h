#pragma once

#include <string>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Connections between hosts: UCX active messages, connected by socket address, with peer error handling.
// TCP everywhere, RDMA where the fabric has it.
namespace capstan::transport::ucx {

// A UCX context and worker on one event loop. Owned by the loop's thread; outlives its listeners and
// connections. Chooses UCX's settings; UCX_* environment variables of the user take precedence. The
// destructor waits at most a second until the peers have read the last frames of closed connections.
class Context {
 public:
  virtual ~Context() = default;

  // Throws UserError if UCX cannot start.
  static std::unique_ptr<Context> open(EventLoop& loop);

  // Listens on "host:port"; port 0 picks a free one. Throws UserError if the address is not available.
  virtual std::unique_ptr<Listener> listen(const std::string& address, Accept accept) = 0;

  // Starts to connect to "host:port". If that fails, on_closed follows later; an address that cannot be
  // resolved fails at once.
  virtual Result<std::unique_ptr<Connection>> connect(const std::string& address) = 0;
};

}  // namespace capstan::transport::ucx
