#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capstan/base/unique_fd.h"

namespace capstan::testing {

// The server's answer to a request for one path.
struct Answer {
  std::string body = {};
  int status = 200;
  bool knows_ranges = true;
  std::string location = {};                   // of a redirect
  std::optional<std::size_t> stop_after = {};  // bytes of the body after which it stops …
  int stops = 1;                               // … this many times
  bool stalls = false;                         // stops by stalling instead of closing
};

// A small HTTP server on loopback, one connection at a time on its own thread. Thread-safe.
class HttpServer {
 public:
  struct Request {
    std::string path;
    std::string range;  // "100-"; empty: none requested
  };

  HttpServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    int ends[2];
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 16) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ::pipe2(ends, O_CLOEXEC) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    wake_read_.reset(ends[0]);
    wake_write_.reset(ends[1]);
    thread_ = std::thread([this] { serve(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() {
    wake_write_.reset();  // the other end becomes readable
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void set(const std::string& path, Answer answer) {
    const std::lock_guard guard(mutex_);
    answers_[path] = std::move(answer);
  }
  std::vector<Request> requests() const {
    const std::lock_guard guard(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (readable(listener_.get())) {
      const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) serve_connection(connection.get());
    }
  }

  // False when the server ends.
  bool readable(int fd) const {
    pollfd fds[] = {{fd, POLLIN, 0}, {wake_read_.get(), POLLIN, 0}};
    ::poll(fds, 2, -1);
    return fds[1].revents == 0;
  }

  void serve_connection(int fd) {
    std::string head;
    char bytes[4096];
    while (head.find("\r\n\r\n") == std::string::npos) {
      if (!readable(fd)) return;
      const auto n = ::read(fd, bytes, sizeof bytes);
      if (n <= 0) return;
      head.append(bytes, static_cast<std::size_t>(n));
    }
    Request request;
    const auto begin = head.find(' ') + 1;
    request.path = head.substr(begin, head.find(' ', begin) - begin);
    const std::string key = "Range: bytes=";
    if (const auto at = head.find(key); at != std::string::npos)
      request.range = head.substr(at + key.size(), head.find("\r\n", at) - at - key.size());
    answer(fd, request);
  }

  void answer(int fd, const Request& request) {
    Answer a;
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(request);
      const auto found = answers_.find(request.path);
      if (found == answers_.end()) {
        a.status = 404;
      } else {
        a = found->second;
        if (found->second.stops-- <= 0) a.stop_after.reset();
      }
    }
    std::string head, body = a.body;
    if (a.status == 200 && a.knows_ranges && !request.range.empty()) {
      const auto from = std::stoul(request.range);
      if (from >= body.size()) {
        a.status = 416;
        body.clear();
      } else {
        a.status = 206;
        head = "Content-Range: bytes " + request.range + std::to_string(body.size() - 1) + "/" +
               std::to_string(body.size()) + "\r\n";
        body = body.substr(from);
      }
    }
    if (!a.location.empty()) head += "Location: " + a.location + "\r\n";
    send(fd, "HTTP/1.1 " + std::to_string(a.status) + " x\r\n" + head +
                 "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
                 body.substr(0, a.stop_after.value_or(body.size())));
    if (!a.stop_after || !a.stalls) return;
    // Until the client gives up.
    char byte;
    while (readable(fd) && ::read(fd, &byte, 1) > 0) {
    }
  }

  static void send(int fd, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }

  UniqueFd listener_, wake_read_, wake_write_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace capstan::testing
