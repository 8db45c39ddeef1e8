#include "capstan/client/connector.h"

#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include "capstan/transport/local/local.h"
#include "capstan/transport/ucx/ucx.h"
#include "capstan/user_error.h"

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

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

bool is_here(const Addresses& addresses) {
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

// A resolved host.
struct Place {
  std::string number;  // numeric address, in brackets if it has colons
  bool is_here = false;
};

std::optional<Place> find(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const Addresses addresses(found, ::freeaddrinfo);
  char number[NI_MAXHOST];
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof number, nullptr, 0, NI_NUMERICHOST) !=
      0)
    return {};
  const bool has_colons = found->ai_family == AF_INET6;
  return Place{has_colons ? fmt::format("[{}]", number) : number, is_here(addresses)};
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

std::vector<std::string> split_addresses(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string address; std::getline(in, address, ',');) out.push_back(address);
  return out;
}

bool is_this_host(const std::string& host) {
  const auto place = find(host);
  return place && place->is_here;
}

Connector make_connector(TransportChoice choice, std::vector<std::string> servers) {
  struct State {
    std::vector<std::string> servers;
    // One UCX context for all connections of a loop, opened by the first that needs it.
    std::unique_ptr<transport::ucx::Context> ucx;
    // Names are looked up once: a lookup may take seconds, and a reconnect has less than one.
    std::map<std::string, Place> places;

    const Place* look_up(const std::string& host) {
      if (!places.contains(host)) {
        if (const auto place = find(host)) places.emplace(host, *place);
      }
      const auto known = places.find(host);
      return known == places.end() ? nullptr : &known->second;
    }
  };
  return [choice, state = std::make_shared<State>(State{std::move(servers), nullptr, {}})](
             transport::EventLoop& loop,
             const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
    for (const auto& server : std::exchange(state->servers, {})) state->look_up(parse_address(server).host);
    const auto [host, port] = parse_address(address);
    const auto* found = state->look_up(host);
    if (!found) return Status::unavailable(fmt::format("cannot find host \"{}\"", host));
    const auto& place = *found;
    if (choice == TransportChoice::kLocal && !place.is_here) {
      throw UserError(fmt::format(
          "transport local reaches this host only, but {} is another host; use auto or ucx", host));
    }
    if (choice != TransportChoice::kUcx && place.is_here) {
      auto connection = transport::local::connect(loop, port);
      if (connection || choice == TransportChoice::kLocal) return connection;
    }
    if (!state->ucx) state->ucx = transport::ucx::Context::open(loop);
    return state->ucx->connect(fmt::format("{}:{}", place.number, port));
  };
}

}  // namespace capstan::client
