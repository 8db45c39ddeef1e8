#include "capstan/transport/ucx/address.h"

#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

namespace capstan::transport::ucx {

Result<HostAndPort> parse(const std::string& text) {
  const auto wrong = [&] {
    return Status::unavailable("\"" + text +
                               "\" is not an address; use host:port, such as 127.0.0.1:4711 or [::1]:4711");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong();
  HostAndPort where;
  where.host = text.substr(0, colon);
  if (where.host.front() == '[') {
    if (where.host.size() < 3 || where.host.back() != ']') return wrong();
    where.host = where.host.substr(1, where.host.size() - 2);
  } else if (where.host.find(':') != std::string::npos) {
    return wrong();
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, where.port);
  if (error != std::errc() || stop != end) return wrong();
  return where;
}

Result<Address> resolve(const HostAndPort& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (error != 0) {
    return Status::unavailable("cannot find host \"" + where.host + "\": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Address address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  return address;
}

std::string to_string(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* number = nullptr;
  if (address.storage.ss_family == AF_INET6) {
    number = &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
  } else {
    number = &reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr;
  }
  if (::inet_ntop(address.storage.ss_family, number, text.data(), text.size()) == nullptr) return "unknown";
  return to_string(HostAndPort{text.data(), port_of(address)});
}

std::string to_string(const HostAndPort& where) {
  const std::string port = ":" + std::to_string(where.port);
  return where.host.find(':') == std::string::npos ? where.host + port : "[" + where.host + "]" + port;
}

std::uint16_t port_of(const Address& address) {
  // sin_port and sin6_port have the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

}  // namespace capstan::transport::ucx
