#pragma once

#include <cfenv>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/server/server.h"
#include "capstan/transport/loopback/loopback.h"
#include "support/fake_clock.h"

namespace capstan::testing {

// The servers of a job and their peers on one event loop, whose clock only the test advances.
// Updates run on that loop, too: after settle() everything that could happen has happened. Address "0" leads.
// Not thread-safe.
class FakeCluster {
 public:
  FakeCluster(bool share_memory, server::ServerOptions options) : network_(share_memory) {
    options.members.token = token_;
    options.inline_elements = std::numeric_limits<std::size_t>::max();
    const auto log =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>());
    for (std::uint32_t i = 0; i < options.job.servers; ++i) {
      if (i > 0) options.connect_to_leader = [this] { return network_.connect(time_.loop(), "0"); };
      auto& server = *servers_.emplace_back(std::make_unique<server::Server>(time_.loop(), options, log));
      listeners_.push_back(network_.listen(time_.loop(), std::to_string(i), [&server](auto connection) {
        server.accept(std::move(connection));
      }));
    }
    time_.pass(std::chrono::milliseconds(200));  // followers find their leader
  }

  FakeTime& time() { return time_; }
  transport::loopback::Network& network() { return network_; }
  const cluster::Token& token() const { return token_; }
  std::size_t servers() const { return servers_.size(); }
  server::Server& server(std::size_t index = 0) { return *servers_[index]; }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& server : servers_)
      all.insert(all.end(), server->weights().begin(), server->weights().end());
    return all;
  }

 private:
  // Servers change the floating-point mode of their thread; the test's thread is restored afterwards.
  class KeepFloatingPointMode {
   public:
    KeepFloatingPointMode() { std::fegetenv(&mode_); }
    ~KeepFloatingPointMode() { std::fesetenv(&mode_); }
    KeepFloatingPointMode(const KeepFloatingPointMode&) = delete;
    KeepFloatingPointMode& operator=(const KeepFloatingPointMode&) = delete;

   private:
    std::fenv_t mode_;
  };

  const KeepFloatingPointMode keep_mode_;
  FakeTime time_;
  transport::loopback::Network network_;
  const cluster::Token token_ = cluster::Token::generate();
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::unique_ptr<transport::Listener>> listeners_;
};

}  // namespace capstan::testing
