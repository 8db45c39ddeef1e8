#include "capstan/client/connector.h"

#include <charconv>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include "capstan/base/user_error.h"
#include "capstan/transport/local/local.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::client {
namespace {

bool same_address(const sockaddr* a, const sockaddr* b) {
  if (!a || !b || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  if (a->sa_family != AF_INET6) return false;
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

bool is_loopback(const sockaddr* a) {
  if (a->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr) >> 24) == 127;
  return a->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr);
}

}  // namespace

TransportChoice parse_transport(const std::string& text) {
  if (text == "auto") return TransportChoice::kAuto;
  if (text == "local") return TransportChoice::kLocal;
  if (text == "ucx") return TransportChoice::kUcx;
  throw UserError(fmt::format("unknown transport \"{}\"; known: auto, local, ucx", text));
}

HostPort parse_address(const std::string& address) {
  const auto colon = address.rfind(':');
  HostPort result;
  const char* end = address.data() + address.size();
  if (colon != std::string::npos && colon > 0) {
    result.host = address.substr(0, colon);
    const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, result.port);
    if (error == std::errc() && stop == end) {
      if (result.host.front() == '[' && result.host.back() == ']')
        result.host = result.host.substr(1, result.host.size() - 2);
      return result;
    }
  }
  throw UserError(
      fmt::format("\"{}\" is not an address: it should look like 127.0.0.1:7000 or host:7000", address));
}

bool is_this_host(const std::string& host) {
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> interfaces(list, ::freeifaddrs);
  for (const auto* a = addresses.get(); a; a = a->ai_next) {
    if (is_loopback(a->ai_addr)) return true;
    for (const auto* i = interfaces.get(); i; i = i->ifa_next) {
      if (same_address(a->ai_addr, i->ifa_addr)) return true;
    }
  }
  return false;
}

Connector make_connector(TransportChoice choice) {
  // One UCX context serves all connections of a loop; it opens with the first that needs it.
  auto context = std::make_shared<std::unique_ptr<transport::ucx::Context>>();
  return [choice, context](transport::EventLoop& loop,
                           const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
    const auto [host, port] = parse_address(address);
    const bool here = is_this_host(host);
    if (choice == TransportChoice::kLocal && !here) {
      throw UserError(fmt::format("--transport local reaches only this host, and {} is another", host));
    }
    if (choice != TransportChoice::kUcx && here) {
      auto connection = transport::local::connect(loop, port);
      if (connection || choice == TransportChoice::kLocal) return connection;
    }
    if (!*context) *context = transport::ucx::Context::open(loop);
    return (*context)->connect(address);
  };
}

}  // namespace capstan::client
