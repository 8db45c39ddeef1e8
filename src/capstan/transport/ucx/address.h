#pragma once

#include <cstdint>
#include <string>

#include <sys/socket.h>

#include "capstan/status.h"

namespace capstan::transport::ucx {

// A socket address, as UCX takes it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// Parses "host:port" or "[v6]:port".
struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostAndPort> parse(const std::string& text);

// Looks up a host, a numeric address or a name. Blocks as long as the resolver does.
Result<Address> resolve(const HostAndPort& where);

// "127.0.0.1:4711", "[::1]:4711"
std::string to_string(const Address& address);
std::string to_string(const HostAndPort& where);
std::uint16_t port_of(const Address& address);

}  // namespace capstan::transport::ucx
