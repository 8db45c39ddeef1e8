#pragma once

#include <memory>
#include <string>

#include "capstan/transport/connection.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::transport {

// A server's listeners: shared memory and UCX under one port number. Owned by the loop's thread; not
// thread-safe.
class Listeners {
 public:
  struct Options {
    std::string address;  // HOST:PORT; port 0: a free one
    bool local = true;    // shared memory, for processes of this host
    bool remote = true;   // UCX, for any host
  };

  // `accept` gets every new connection; connections must be destroyed before this object. Throws UserError if
  // the port is in use.
  Listeners(EventLoop& loop, const Options& options, const Accept& accept);

  const std::string& address() const { return address_; }  // HOST:PORT for clients

 private:
  std::unique_ptr<ucx::Context> ucx_;
  std::unique_ptr<Listener> remote_, local_;
  std::string address_;
};

}  // namespace capstan::transport
