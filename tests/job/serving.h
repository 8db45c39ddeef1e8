#pragma once

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <spdlog/sinks/null_sink.h>

#include "capstan/client/connector.h"
#include "capstan/job/serve.h"

#include "job/fakes.h"

namespace capstan::job {

// `serve` on a thread. The destructor ends it.
class Serving {
 public:
  explicit Serving(ServeOptions options, FakeClock* clock = nullptr) : token_(options.token) {
    options.config.transport = "local";
    options.log = std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::null_sink_mt>());
    Environment environment{
        .events = events_, .stop = stop_, .end_at_once = [this] { ended_at_once_ = true; }};
    if (clock) environment.now = clock->now();
    result_ = std::async(std::launch::async, [this, options, environment] {
      try {
        return serve(options, environment, [this](const std::string& address) { listen(address); });
      } catch (...) {
        listen("");
        throw;
      }
    });
  }
  ~Serving() {
    stop();
    stop();
  }

  std::string address() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTestTimeout, [&] { return address_.has_value(); });
    return address_.value_or("");
  }
  void stop() { stop_.request(); }
  // Waits until `serve` has polled the stop token `count` more times.
  void await_polls(int count) {
    const int before = stop_.polls();
    (void)testing::eventually([&] { return stop_.polls() >= before + count; });
  }
  bool ended_at_once() const { return ended_at_once_; }
  ServeResult result() { return result_.get(); }
  bool is_running() { return result_.wait_for(std::chrono::seconds(0)) != std::future_status::ready; }

  client::LinkOptions link(std::uint32_t rank) {
    client::LinkOptions link;
    link.servers = {address()};
    link.token = token_;
    link.index = rank;
    return link;
  }
  client::Connector connector() { return client::make_connector(client::TransportChoice::kLocal); }

 private:
  void listen(const std::string& address) {
    const std::lock_guard lock(mutex_);
    if (!address_) address_ = address;
    changed_.notify_all();
  }

  const cluster::Token token_;
  RecordedEvents events_;
  FakeStop stop_;
  std::atomic<bool> ended_at_once_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<std::string> address_;
  std::future<ServeResult> result_;
};

}  // namespace capstan::job
