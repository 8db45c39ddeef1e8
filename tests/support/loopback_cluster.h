#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/base/random.h"
#include "capstan/client/observer.h"
#include "capstan/client/worker_client.h"
#include "capstan/server/server.h"
#include "capstan/transport/faulty/faulty.h"
#include "capstan/transport/loopback/loopback.h"
#include "support/eventually.h"

namespace capstan::testing {

inline std::shared_ptr<spdlog::logger> silent_log() {
  return std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
}

// The servers of a job as threads of the test, on their own in-memory network. Address "0" is the leader.
class LoopbackCluster {
 public:
  // `faults`, if given, apply to messages from the servers to their clients.
  LoopbackCluster(bool share_memory, server::ServerOptions options,
                  std::optional<transport::faulty::Faults> faults = {})
      : network_(share_memory), token_(cluster::Token::generate()) {
    options.members.token = token_;
    for (std::uint32_t i = 0; i < options.job.servers; ++i) {
      auto mine = options;
      if (i > 0) {  // followers learn about checkpoints from the leader
        mine.checkpoints = {};
        mine.resume.reset();
      }
      nodes_.push_back(std::make_unique<Node>(network_, mine, i, faults));
      addresses_.push_back(std::to_string(i));
    }
  }
  ~LoopbackCluster() {
    for (auto& node : nodes_) node->end();
  }

  client::LinkOptions link_options() const {
    client::LinkOptions options;
    options.servers = addresses_;
    options.token = token_;
    options.connect_timeout = options.silence = kTestTimeout;  // for servers that are starved for a while
    return options;
  }
  client::LinkOptions worker_options(std::uint32_t rank) const {
    auto options = link_options();
    options.index = rank;
    return options;
  }
  client::Connector connector() {
    return [this](transport::EventLoop& loop, const std::string& address) {
      return network_.connect(loop, address);
    };
  }
  // Every connection has its own faults, derived from the fault plan's seed.
  client::Connector connector(transport::faulty::Faults faults) {
    return [this, faults, n = std::uint64_t{0}](
               transport::EventLoop& loop,
               const std::string& address) mutable -> Result<std::unique_ptr<transport::Connection>> {
      auto inner = network_.connect(loop, address);
      if (!inner) return inner;
      auto mine = faults;
      mine.seed = derive_seed({faults.seed, n});
      // Only the first connection is cut, so that the reconnect succeeds.
      if (n++ > 0) mine.cut_after = 0;
      return transport::faulty::wrap(loop, std::move(*inner), mine);
    };
  }
  transport::loopback::Network& network() { return network_; }
  const cluster::Token& token() const { return token_; }

  // The outcome of a server; waits for the end of its job.
  server::Server::Outcome outcome(std::size_t server = 0) { return nodes_[server]->outcome(); }
  // The leader's last report, and the weights of all servers in one array; after the end of the job.
  const wire::StatusReport& report() { return nodes_[0]->report(); }
  std::vector<float> weights() {
    std::vector<float> all;
    for (auto& node : nodes_) {
      const auto part = node->weights();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  // Ends a server's thread at once, as if its process had died.
  void kill(std::size_t server) { nodes_[server]->end(); }

 private:
  class Node {
   public:
    Node(transport::loopback::Network& network, const server::ServerOptions& given, std::uint32_t index,
         const std::optional<transport::faulty::Faults>& faults) {
      std::atomic<bool> ready = false;
      thread_ = std::thread([this, &network, options = given, index, faults, &ready]() mutable {
        transport::EventLoop loop;
        if (index > 0) options.connect_to_leader = [&] { return network.connect(loop, "0"); };
        std::uint64_t accepted = 0;
        server::Server server(loop, options, silent_log());
        auto listener = network.listen(loop, std::to_string(index), [&](auto connection) {
          // The leader's first connections are those of the followers, which have no faults.
          const bool is_server = index == 0 && accepted + 1 < options.job.servers;
          ++accepted;
          if (faults && !is_server) {
            auto mine = *faults;
            mine.seed = derive_seed({faults->seed, accepted});
            connection = transport::faulty::wrap(loop, std::move(connection), mine);
          }
          server.accept(std::move(connection));
        });
        ready = true;
        ready.notify_all();
        // A job that does not end fails its test instead of holding it up.
        const auto give_up = SteadyClock::now() + 2 * kTestTimeout;
        while (!ending_ && server.outcome() == server::Server::Outcome::kRunning &&
               SteadyClock::now() < give_up) {
          loop.run_once(SteadyClock::now() + std::chrono::milliseconds(50));
        }
        outcome_ = server.outcome();
        report_ = server.status();
        // A killed server has no result: it may be in the middle of an update.
        if (outcome_ == server::Server::Outcome::kFinished ||
            outcome_ == server::Server::Outcome::kAllWorkersLost)
          weights_.assign(server.weights().begin(), server.weights().end());
      });
      ready.wait(false);
    }
    void end() {
      ending_ = true;
      if (thread_.joinable()) thread_.join();
    }
    server::Server::Outcome outcome() { return join().outcome_; }
    const wire::StatusReport& report() { return join().report_; }
    const std::vector<float>& weights() { return join().weights_; }

   private:
    Node& join() {
      if (thread_.joinable()) thread_.join();
      return *this;
    }

    std::thread thread_;
    std::atomic<bool> ending_ = false;
    server::Server::Outcome outcome_ = server::Server::Outcome::kRunning;
    wire::StatusReport report_;
    std::vector<float> weights_;
  };

  transport::loopback::Network network_;
  cluster::Token token_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::string> addresses_;
};

}  // namespace capstan::testing
