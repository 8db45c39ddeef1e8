#include "capstan/transport/local/local.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "capstan/transport/local/local_core.h"
#include "capstan/user_error.h"

namespace capstan::transport::local {
namespace {

constexpr std::uint16_t kFirstFreePort = 20000;
constexpr std::uint16_t kLastFreePort = 60999;
constexpr int kFreePortTries = 1000;
// Without a pause, a waiting client would wake the loop permanently while the process is out of descriptors.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
// Then the loop serves the others; clients that connect without end must not keep it from them.
constexpr int kAcceptsPerTurn = 16;

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

Name name_of(std::uint16_t port) {
  Name name;
  name.address.sun_family = AF_UNIX;
  // A leading zero byte means the abstract namespace: no file; the name ends with the last socket.
  const std::string text = std::string(1, '\0') + "capstan-" + std::to_string(port);
  std::memcpy(name.address.sun_path, text.data(), text.size());
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  return name;
}

UniqueFd open_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

std::string reason() {
  return std::strerror(errno);
}

bool bind_to(int socket, std::uint16_t port) {
  const Name name = name_of(port);
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&name.address), name.size) == 0;
}

// Returns the port that was bound.
std::uint16_t bind_any(int socket, std::uint16_t port) {
  if (port != 0) {
    if (bind_to(socket, port)) return port;
    if (errno != EADDRINUSE)
      throw UserError("cannot listen on local:" + std::to_string(port) + ": " + reason());
    throw UserError("port " + std::to_string(port) +
                    " is in use on this host; choose another, or 0 for any free one");
  }
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirstFreePort, kLastFreePort);
  for (int i = 0; i < kFreePortTries; ++i) {
    const auto candidate = static_cast<std::uint16_t>(ports(random));
    if (bind_to(socket, candidate)) return candidate;
  }
  throw UserError("cannot find a free local port: " + reason());
}

std::string client_name(int socket, std::uint16_t port) {
  ucred who{};
  socklen_t size = sizeof(who);
  std::string name = "local:" + std::to_string(port);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
    name += " (process " + std::to_string(who.pid) + ")";
  }
  return name;
}

// Owned by the loop's thread; not thread-safe.
class LocalListener final : public Listener {
 public:
  LocalListener(EventLoop& loop, std::uint16_t port, Accept accept)
      : loop_(loop), accept_(std::make_shared<Accept>(std::move(accept))), socket_(open_socket()) {
    if (!socket_) throw UserError("cannot open a socket: " + reason());
    port_ = bind_any(socket_.get(), port);
    if (::listen(socket_.get(), SOMAXCONN) != 0)
      throw UserError("cannot listen on " + address() + ": " + reason());
    loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { take_some(); });
  }
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

  ~LocalListener() override {
    loop_.cancel(pause_);
    loop_.unwatch(socket_.get());
  }

  std::string address() const override { return "local:" + std::to_string(port_); }

 private:
  // The level-triggered watch fires again if more are waiting.
  void take_some() {
    const auto accept = accept_;
    // Without a second owner, the call has destroyed this listener.
    for (int i = 0; i < kAcceptsPerTurn && accept.use_count() > 1; ++i) {
      UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!client) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause();
        if (errno != EINTR && errno != ECONNABORTED) return;
        continue;
      }
      std::string name = client_name(client.get(), port_);
      (*accept)(
          Core::make_connection(std::make_shared<LocalCore>(loop_, std::move(client), std::move(name))));
    }
  }

  void pause() {
    loop_.change(socket_.get(), 0);
    pause_ = loop_.call_at(loop_.now() + kAcceptPause, [this] { loop_.change(socket_.get(), EPOLLIN); });
  }

  EventLoop& loop_;
  std::shared_ptr<Accept> accept_;
  UniqueFd socket_;
  std::uint16_t port_ = 0;
  EventLoop::TimerId pause_ = 0;
};

}  // namespace

std::unique_ptr<Listener> listen(EventLoop& loop, std::uint16_t port, Accept accept) {
  return std::make_unique<LocalListener>(loop, port, std::move(accept));
}

Result<std::unique_ptr<Connection>> connect(EventLoop& loop, std::uint16_t port) {
  const std::string peer = "local:" + std::to_string(port);
  UniqueFd socket = open_socket();
  const Name name = name_of(port);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0) {
    if (errno == ECONNREFUSED) return Status::unavailable("no server listens on " + peer);
    return Status::unavailable("cannot connect to " + peer + ": " + reason());
  }
  return Core::make_connection(std::make_shared<LocalCore>(loop, std::move(socket), peer));
}

}  // namespace capstan::transport::local
