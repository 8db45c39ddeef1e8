#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "fabric.h"

namespace capstan::transport::testing {

// The contract of connection.h, tested for every transport. A server and its clients on one loop.
class Conformance : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    fabric_ = GetParam().make();
    listener_ = fabric_->listen(loop_, [this](std::unique_ptr<Connection> connection) {
      servers_.push_back(std::move(connection));
      at_server_.emplace_back();
      if (set_handlers_) servers_.back()->set_handler(&at_server_.back());
    });
  }
  void TearDown() override {
    client_.reset();
    servers_.clear();
    listener_.reset();
  }

  std::unique_ptr<Connection> connect(Handler* handler) {
    auto made = fabric_->connect(loop_, listener_->address());
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    if (handler != nullptr) (*made)->set_handler(handler);
    return std::move(*made);
  }
  // client_ to servers_[0], both known to each other.
  void connect_pair() {
    client_ = connect(&at_client_);
    client_->send(bytes_of("hello"));
    ASSERT_TRUE(run_until([this] { return !at_server_.empty() && at_server_[0].frames.size() == 1; }));
    at_server_[0].frames.clear();
    at_server_[0].payload_sizes.clear();
  }
  bool run_until(const std::function<bool()>& done) { return testing::run_until(loop_, done); }
  // For things that must not happen: a round trip over another connection, then everything that is ready. A
  // transport with a thread of its own makes progress meanwhile.
  void settle() {
    const auto index = at_server_.size();
    Recorder at_other;
    const auto other = connect(&at_other);
    other->send(bytes_of("there"));
    ASSERT_TRUE(run_until([&] { return at_server_.size() == index + 1; }));
    const auto peer = std::move(servers_.back());
    servers_.pop_back();
    if (!set_handlers_) peer->set_handler(&at_server_[index]);
    ASSERT_TRUE(run_until([&] { return at_server_[index].frames.size() == 1; }));
    peer->send(bytes_of("back"));
    ASSERT_TRUE(run_until([&] { return at_other.frames.size() == 1; }));
    drain(loop_);
  }
  Connection& server() { return *servers_[0]; }
  Recorder& at_server() { return at_server_[0]; }

  EventLoop loop_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Listener> listener_;
  bool set_handlers_ = true;
  std::deque<Recorder> at_server_;
  Recorder at_client_;
  std::vector<std::unique_ptr<Connection>> servers_;
  std::unique_ptr<Connection> client_;
};

// The same for those that share memory.
class SharedMemory : public Conformance {};

}  // namespace capstan::transport::testing
