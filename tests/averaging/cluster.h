#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "capstan/averaging/client.h"
#include "capstan/averaging/server.h"
#include "capstan/base/random.h"
#include "capstan/transport/faulty/faulty.h"
#include "capstan/transport/loopback/loopback.h"

#include "support/eventually.h"
#include "support/loopback_cluster.h"

namespace capstan::testing {

using MakeRule = std::function<std::unique_ptr<averaging::Rule>()>;

inline MakeRule on_arrival() {
  return [] { return std::make_unique<averaging::AverageOnArrival>(); };
}
inline MakeRule in_rank_order() {
  return [] { return std::make_unique<averaging::AverageInRankOrder>(); };
}

// Averaging servers as threads of the test, on their own in-memory network; addresses "0", "1" ….
class AveragingCluster {
 public:
  AveragingCluster(bool share_memory, averaging::ServerOptions options, const MakeRule& rule,
                   averaging::Observer* observer = nullptr)
      : network_(share_memory), token_(cluster::Token::generate()) {
    options.members.token = token_;
    for (std::uint32_t i = 0; i < options.servers; ++i) {
      options.index = {i};
      nodes_.push_back(std::make_unique<Node>(network_, options, rule(), observer));
      addresses_.push_back(std::to_string(i));
    }
  }

  averaging::ClientOptions client_options(std::uint32_t rank, std::vector<averaging::Shape> buckets) const {
    averaging::ClientOptions options;
    options.links.servers = addresses_;
    options.links.token = token_;
    options.links.index = rank;
    options.links.connect_timeout = options.links.silence = kTestTimeout;
    options.buckets = std::move(buckets);
    return options;
  }
  client::Connector connector() {
    return [this](transport::EventLoop& loop, const std::string& address) {
      return network_.connect(loop, address);
    };
  }
  // Every connection breaks after `messages` messages of the client, except the tenth and later ones.
  client::Connector breaking_connector(std::uint64_t messages) {
    return [this, messages, n = 0](
               transport::EventLoop& loop,
               const std::string& address) mutable -> Result<std::unique_ptr<transport::Connection>> {
      auto inner = network_.connect(loop, address);
      if (!inner) return inner;
      transport::faulty::Faults faults;
      faults.cut_after = n++ < 10 ? messages + static_cast<std::uint64_t>(n) : 0;
      return transport::faulty::wrap(loop, std::move(*inner), faults);
    };
  }
  std::unique_ptr<averaging::AveragingClient> join(std::uint32_t rank,
                                                   std::vector<averaging::Shape> buckets) {
    auto client = averaging::AveragingClient::join(client_options(rank, std::move(buckets)), connector());
    EXPECT_TRUE(client) << client.status().message();
    return client ? std::move(*client) : nullptr;
  }

  transport::loopback::Network& network() { return network_; }
  const cluster::Token& token() const { return token_; }
  // Runs `action` on the thread of a server.
  template <class Action>
  auto on_server(std::size_t server, Action action) {
    return nodes_[server]->run(std::move(action));
  }
  std::string failure(std::size_t server = 0) {
    return on_server(server, [](auto& s) { return s.failure().message(); });
  }

 private:
  class Node {
   public:
    Node(transport::loopback::Network& network, const averaging::ServerOptions& options,
         std::unique_ptr<averaging::Rule> rule, averaging::Observer* observer) {
      std::promise<void> ready;
      thread_ = std::thread([&, this, rule = std::move(rule)]() mutable {
        transport::EventLoop loop;
        averaging::AveragingServer server(loop, options, std::move(rule), observer, silent_log());
        const auto listener = network.listen(loop, std::to_string(options.index.value),
                                             [&](auto connection) { server.accept(std::move(connection)); });
        loop_ = &loop;
        server_ = &server;
        ready.set_value();
        while (!ending_) loop.run_once(TimePoint::max());
      });
      ready.get_future().wait();
    }
    ~Node() {
      loop_->post([this] { ending_ = true; });
      thread_.join();
    }
    template <class Action>
    std::invoke_result_t<Action, averaging::AveragingServer&> run(Action action) {
      using Value = std::invoke_result_t<Action, averaging::AveragingServer&>;
      const auto task =
          std::make_shared<std::packaged_task<Value()>>([this, action] { return action(*server_); });
      auto result = task->get_future();
      loop_->post([task] { (*task)(); });
      return result.get();
    }

   private:
    transport::EventLoop* loop_ = nullptr;
    averaging::AveragingServer* server_ = nullptr;
    bool ending_ = false;  // of the server's thread
    std::thread thread_;
  };

  transport::loopback::Network network_;
  cluster::Token token_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace capstan::testing
