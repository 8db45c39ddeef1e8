#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "capstan/cluster/handshake.h"
#include "capstan/transport/loopback/loopback.h"
#include "capstan/wire/frames.h"
#include "support/eventually.h"
#include "support/fake_cluster.h"

namespace capstan::testing {

// A client that sends exactly what a test specifies and nothing else: no heartbeats. Its waits end
// after kTestTimeout; on a cluster with a clock of its own, when nothing more happens. Not thread-safe.
class RawPeer final : private transport::Handler {
 public:
  RawPeer(transport::loopback::Network& network, const std::string& address)
      : own_loop_(std::in_place), loop_(*own_loop_) {
    connect(network, address);
  }
  RawPeer(transport::loopback::Network& network, const std::string& address, FakeTime& time)
      : time_(&time), loop_(time.loop()) {
    connect(network, address);
  }
  RawPeer(FakeCluster& cluster, const std::string& address)
      : RawPeer(cluster.network(), address, cluster.time()) {}
  ~RawPeer() override = default;

  void send(const wire::Message& message) { connection_->send(frame(wire::encode(message))); }
  void send(const wire::Message& message, std::vector<float> payload) {
    const auto kept = std::make_shared<const std::vector<float>>(std::move(payload));
    connection_->send(frame(wire::encode(message)), std::as_bytes(std::span(*kept)), [kept](Status) {});
  }
  // From memory of the caller, which outlives this object.
  void send_from(const wire::Message& message, transport::Bytes payload) {
    connection_->send(frame(wire::encode(message)), payload, [](Status) {});
  }
  void send(const wire::Message& message, const transport::Segment& segment) {
    connection_->send(frame(wire::encode(message)), segment);
  }
  // Any bytes, in place of the next message.
  void send_bytes(const std::vector<std::byte>& bytes) { connection_->send(frame(bytes)); }
  void send_frame(const std::vector<std::byte>& whole) { connection_->send(whole); }
  void skip() { ++sent_; }    // as if a message had got lost
  void repeat() { --sent_; }  // the next message takes the place of the last

  // The next message of this type; others are discarded. None if the connection ends first.
  template <class T>
  std::optional<T> next() {
    if (time_) time_->settle();
    const auto give_up = SteadyClock::now() + kTestTimeout;
    do {
      while (!inbox_.empty()) {
        const auto message = std::move(inbox_.front());
        inbox_.pop_front();
        if (const auto* found = std::get_if<T>(&message)) return *found;
      }
      if (closed_ || time_) return {};
      loop_.run_once(give_up);
    } while (SteadyClock::now() < give_up);
    return {};
  }
  // Waits for the end of the connection; the reason from the server or from the transport.
  std::optional<std::string> wait_closed() {
    if (const auto refused = next<wire::Refused>()) return refused->reason;
    if (!closed_) return {};
    return closed_->message();
  }
  bool is_closed() const { return closed_.has_value(); }

  bool shake_hands(const cluster::Token& token) {
    cluster::ClientHandshake handshake(token);
    const auto challenge = next<wire::Challenge>();
    if (!challenge) return false;
    send(*handshake.answer(*challenge));
    const auto trusted = next<wire::Trusted>();
    return trusted && handshake.check(*trusted).is_ok();
  }
  std::optional<wire::Joined> join(const cluster::Token& token, const wire::Join& request) {
    if (!shake_hands(token)) return {};
    send(request);
    return next<wire::Joined>();
  }

 private:
  void connect(transport::loopback::Network& network, const std::string& address) {
    auto connection = network.connect(loop_, address);
    if (connection) {
      connection_ = std::move(*connection);
      connection_->set_handler(this);
    } else {
      closed_ = connection.status();
    }
  }
  transport::Placement place(transport::Connection&, transport::Bytes, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_frame(transport::Connection&, transport::Incoming incoming) override {
    if (auto message = reader_.read(incoming.frame); message && *message)
      inbox_.push_back(std::move(**message));
  }
  void on_closed(transport::Connection&, Status why) override { closed_ = std::move(why); }

  std::vector<std::byte> frame(const std::vector<std::byte>& message) {
    std::vector<std::byte> whole;
    for (int shift = 0; shift < 64; shift += 8) whole.push_back(static_cast<std::byte>(sent_ >> shift));
    whole.insert(whole.end(), message.begin(), message.end());
    ++sent_;
    return whole;
  }

  FakeTime* time_ = nullptr;
  std::optional<transport::EventLoop> own_loop_;
  transport::EventLoop& loop_;
  std::uint64_t sent_ = 0;
  wire::FrameReader reader_;
  std::deque<wire::Message> inbox_;
  std::optional<Status> closed_;
  std::unique_ptr<transport::Connection> connection_;
};

}  // namespace capstan::testing
