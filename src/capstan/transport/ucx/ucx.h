#pragma once

#include <string>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Connections between hosts: UCX active messages, connected by socket address, with peer error handling.
// TCP everywhere, RDMA where the fabric has it.
namespace capstan::transport::ucx {

// A UCX context and worker on one event loop. Owned by the loop's thread; outlives its listeners and
// connections. Settings of UCX are chosen here; a user's UCX_* environment variables win. Its destructor
// waits, a second at most, until the last frames of closed connections are read.
class Context {
 public:
  virtual ~Context() = default;

  // Opens UCX. Throws UserError where UCX cannot start.
  static std::unique_ptr<Context> open(EventLoop& loop);

  // Listens on "host:port"; port 0 picks a free one. Throws UserError where the address cannot be had.
  virtual std::unique_ptr<Listener> listen(const std::string& address, Accept accept) = 0;

  // Starts to connect to "host:port". A connection that cannot be made is closed (on_closed) later; an
  // address that cannot be resolved fails at once.
  virtual Result<std::unique_ptr<Connection>> connect(const std::string& address) = 0;
};

}  // namespace capstan::transport::ucx
