#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/base/status.h"
#include "capstan/client/driver.h"
#include "capstan/cluster/handshake.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/frames.h"

namespace capstan::client {

// Opens a connection to a server's address on a loop.
using Connector = std::function<Result<std::unique_ptr<transport::Connection>>(transport::EventLoop&,
                                                                               const std::string& address)>;

struct LinkOptions {
  std::vector<std::string> servers;  // addresses; the first server leads
  cluster::Token token;
  wire::Role role = wire::Role::kWorker;
  std::optional<std::uint32_t> index;                   // the rank a worker asks for
  Duration connect_timeout = std::chrono::seconds(10);  // for servers that are still starting
  Duration silence = std::chrono::milliseconds(3000);   // a server that says nothing for so long is lost
  Duration reconnect = std::chrono::milliseconds(900);  // how long to try again after a broken connection
};

// One client's connections to all servers of a job: handshake, join, heartbeats, and coming back after a
// broken connection. All calls and events under the driver's lock, except join().
class Links {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                            std::size_t bytes) = 0;
    virtual void on_message(std::size_t server, const wire::Message& message) = 0;
    // A server took this client in: the first time, or again after a broken connection. `weights` is the
    // server's segment where it sends one.
    virtual void on_joined(std::size_t server, std::optional<transport::Segment> weights, bool again) = 0;
  };

  Links(Driver& driver, LinkOptions options, Connector connector, Events& events);
  ~Links();

  // Connects to the first server, then to the others, and joins them. Without the lock.
  Status join(const std::vector<wire::Tensor>& layout, const std::vector<wire::Tensor>& buffers = {},
              const wire::DataSource& data = {});

  std::size_t size() const { return links_.size(); }
  // False while a connection is broken: what is sent there then goes nowhere, until on_joined().
  bool is_joined(std::size_t server) const;
  const wire::Joined& joined(std::size_t server) const;
  bool shares_memory(std::size_t server) const;
  const std::string& transport(std::size_t server) const;  // its kind
  Incarnation incarnation() const { return incarnation_; }

  void send(std::size_t server, const wire::Message& message);
  // `keep` owns the payload's memory until it has left; without it the caller sees to that.
  void send(std::size_t server, const wire::Message& message, std::span<const float> payload,
            std::shared_ptr<const void> keep = nullptr);
  void send(std::size_t server, const wire::Message& message, const transport::Segment& segment);

  // Once not ok, the job is over for this client; it says why.
  const Status& failure() const { return failure_; }
  // This server has said good-bye: its connection may end.
  void dismissed(std::size_t server);
  // Ends all connections.
  void close();

 private:
  class Link;

  Status join_one(std::size_t server, TimePoint deadline);
  void start(Link& link);
  void broken(Link& link, Status why);
  void fail(Status why);
  void beat();

  Driver& driver_;
  const LinkOptions options_;
  const Connector connector_;
  Events& events_;
  Incarnation incarnation_;
  std::vector<wire::Tensor> layout_, buffers_;
  wire::DataSource data_;
  std::optional<std::uint32_t> index_;
  std::vector<std::unique_ptr<Link>> links_;
  Status failure_;
  bool ending_ = false;
  std::optional<transport::EventLoop::TimerId> timer_;
  TimePoint last_beat_;
};

}  // namespace capstan::client
