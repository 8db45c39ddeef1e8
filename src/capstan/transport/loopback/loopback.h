#pragma once

#include <memory>
#include <string>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Connections inside one process, between event loops that may run on different threads: for tests that
// run a whole cluster as threads.
namespace capstan::transport::loopback {

// A private address space. Thread-safe. Outlives its listeners and connections.
class Network {
 public:
  // With `share_memory`, segments can be sent, as between processes of one host; without, all bulk data is
  // sent as payloads, as between hosts.
  explicit Network(bool share_memory);
  ~Network();

  std::unique_ptr<Listener> listen(EventLoop& loop, const std::string& name, Accept accept);
  Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& name);

 private:
  friend struct NetworkAccess;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace capstan::transport::loopback
