#pragma once

#include <string>
#include <vector>

#include "capstan/client/links.h"

namespace capstan::client {

enum class TransportChoice { kAuto, kLocal, kUcx };

// "auto", "local", "ucx"; throws UserError.
TransportChoice parse_transport(const std::string& text);

// Opens connections to servers. kAuto uses local if the address is this host's and a local server listens on
// the port, and UCX otherwise. A connector serves one loop, which must outlive it. The names in `servers` are
// looked up before the first connection: later, a lookup would keep a member from sending heartbeats.
Connector make_connector(TransportChoice choice, std::vector<std::string> servers = {});

// Parses "host:port", with an IPv6 host in brackets; throws UserError.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
HostPort parse_address(const std::string& address);

// Splits "a:7000,b:7001".
std::vector<std::string> split_addresses(const std::string& list);

// True if the host, by name or number, is an address of this machine (and network namespace).
bool is_this_host(const std::string& host);

}  // namespace capstan::client
