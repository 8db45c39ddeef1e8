#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/client/driver.h"
#include "capstan/cluster/link.h"
#include "capstan/cluster/pause_detector.h"
#include "capstan/status.h"

namespace capstan::client {

// Opens a connection to a server's address on a loop.
using Connector = std::function<Result<std::unique_ptr<transport::Connection>>(transport::EventLoop&,
                                                                               const std::string& address)>;

struct LinkOptions {
  std::vector<std::string> servers;  // addresses; the first server is the leader
  cluster::Token token;
  wire::Role role = wire::Role::kWorker;
  std::optional<std::uint32_t> index;                   // the rank a worker asks for
  std::string job;                                      // the job as configured here; may be empty
  bool leader_only = false;                             // join the first server only
  Duration connect_timeout = std::chrono::seconds(10);  // for servers that are still starting
  Duration silence = std::chrono::milliseconds(3000);   // a server that is silent for this long is lost
  Duration reconnect = std::chrono::milliseconds(900);  // how long to retry after a broken connection
};

// One client's links to all servers of a job. It joins the first server first, which assigns the member's
// index. All calls and events are made under the driver's lock, except join().
class Links final : private cluster::Link::Events {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                            std::size_t bytes) = 0;
    virtual void on_message(std::size_t server, const wire::Message& message) = 0;
    // A server accepted this client: the first time, or `again` after a broken connection. `weights` is the
    // server's segment, if it sends one.
    virtual void on_joined(std::size_t server, std::optional<transport::Segment> weights, bool again) = 0;
  };

  Links(Driver& driver, LinkOptions options, Connector connector, Events& events);
  ~Links() override;

  // Connects to the first server, then to the others, and joins them with what `as` declares; this object
  // sets the role, index, incarnation and job. Called without the lock.
  Status join(wire::Join as);

  std::size_t size() const { return links_.size(); }
  const wire::Joined& joined(std::size_t server) const { return links_[server]->joined(); }
  bool shares_memory(std::size_t server) const { return links_[server]->shares_memory(); }
  const std::string& transport(std::size_t server) const { return links_[server]->kind(); }
  Incarnation incarnation() const { return join_.incarnation; }

  // Messages that are sent while a connection is broken are dropped; on_joined() follows when it is back.
  void send(std::size_t server, const wire::Message& message);
  // `keep` owns the payload's memory until it is sent; without it, the caller keeps the memory valid.
  void send(std::size_t server, const wire::Message& message, std::span<const float> payload,
            std::shared_ptr<const void> keep = nullptr);
  void send(std::size_t server, const wire::Message& message, const transport::Segment& segment);

  // Why the job has ended for this client; ok while it has not.
  const Status& failure() const { return failure_; }
  // This server has confirmed the leave: the end of its connection is not a loss.
  void expect_end(std::size_t server) { links_[server]->expect_end(); }
  // This server has sent malformed bytes: the job ends for this client.
  void lose(std::size_t server, const Status& why);
  // Ends all connections.
  void close();

 private:
  wire::Join make_join() override { return join_; }
  transport::Placement on_payload(cluster::Link& link, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(cluster::Link& link, const wire::Message& message) override;
  void on_joined(cluster::Link& link, std::optional<transport::Segment> segment, bool again) override;
  void on_lost(cluster::Link& link, Status why) override;

  Status join_one(std::size_t server, TimePoint deadline);
  Status check_servers() const;
  std::size_t index_of(const cluster::Link& link) const;
  void beat();

  Driver& driver_;
  const LinkOptions options_;
  const Connector connector_;
  Events& events_;
  wire::Join join_;
  std::vector<std::unique_ptr<cluster::Link>> links_;
  Status failure_;
  std::optional<transport::EventLoop::TimerId> timer_;
  std::optional<cluster::PauseDetector> pauses_;
};

}  // namespace capstan::client
