#pragma once

#include <string>
#include <vector>

#include "capstan/client/links.h"

namespace capstan::client {

enum class TransportChoice { kAuto, kLocal, kUcx };

// "auto", "local", "ucx"; throws UserError.
TransportChoice parse_transport(const std::string& text);

// Opens connections to servers: kAuto takes local where the address is this host's and a server is there
// under its port, UCX otherwise. A connector serves one loop, which must outlive it.
Connector make_connector(TransportChoice choice);

// "host:port" taken apart; throws UserError. An IPv6 host stands in brackets.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
HostPort parse_address(const std::string& address);

// "a:7000,b:7001" taken apart.
std::vector<std::string> split_addresses(const std::string& list);

// True where the host, by name or number, is an address of this machine's (and network namespace's).
bool is_this_host(const std::string& host);

}  // namespace capstan::client
