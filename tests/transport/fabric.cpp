#include "fabric.h"

#include "capstan/base/random.h"
#include "capstan/transport/faulty/faulty.h"
#include "capstan/transport/local/local.h"
#include "capstan/transport/loopback/loopback.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::transport::testing {
namespace {

class LoopbackFabric : public Fabric {
 public:
  explicit LoopbackFabric(bool share_memory) : network_(share_memory) {}
  std::unique_ptr<Listener> listen(EventLoop& loop, Accept accept) override {
    return network_.listen(loop, "server", std::move(accept));
  }
  std::unique_ptr<Listener> listen_at(EventLoop& loop, const std::string& address, Accept accept) override {
    return network_.listen(loop, address, std::move(accept));
  }
  Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& address) override {
    return network_.connect(loop, address);
  }

 private:
  loopback::Network network_;
};

class FaultlessFabric final : public LoopbackFabric {
 public:
  FaultlessFabric() : LoopbackFabric(true) {}
  std::unique_ptr<Listener> listen(EventLoop& loop, Accept accept) override {
    return LoopbackFabric::listen(loop, [&loop, accept](std::unique_ptr<Connection> connection) {
      accept(faulty::wrap(loop, std::move(connection), {}));
    });
  }
  Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& address) override {
    auto made = LoopbackFabric::connect(loop, address);
    if (!made) return made.status();
    return faulty::wrap(loop, std::move(*made), {});
  }
};

class LocalFabric final : public Fabric {
 public:
  std::unique_ptr<Listener> listen(EventLoop& loop, Accept accept) override {
    return local::listen(loop, 0, std::move(accept));
  }
  std::unique_ptr<Listener> listen_at(EventLoop& loop, const std::string& address, Accept accept) override {
    return local::listen(loop, port_of(address), std::move(accept));
  }
  Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& address) override {
    return local::connect(loop, port_of(address));
  }

 private:
  static std::uint16_t port_of(const std::string& address) {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
};

// A context per side, as two processes have. Contexts are opened by the thread that uses them.
class UcxFabric final : public Fabric {
 public:
  std::unique_ptr<Listener> listen(EventLoop& loop, Accept accept) override {
    return listen_at(loop, "127.0.0.1:0", std::move(accept));
  }
  std::unique_ptr<Listener> listen_at(EventLoop& loop, const std::string& address, Accept accept) override {
    if (!server_) server_ = ucx::Context::open(loop);
    return server_->listen(address, std::move(accept));
  }
  Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& address) override {
    if (!client_) client_ = ucx::Context::open(loop);
    return client_->connect(address);
  }

 private:
  std::unique_ptr<ucx::Context> server_;
  std::unique_ptr<ucx::Context> client_;
};

}  // namespace

std::unique_ptr<Fabric> make_loopback_shared() {
  return std::make_unique<LoopbackFabric>(true);
}
std::unique_ptr<Fabric> make_loopback_copying() {
  return std::make_unique<LoopbackFabric>(false);
}
std::unique_ptr<Fabric> make_local() {
  return std::make_unique<LocalFabric>();
}
std::unique_ptr<Fabric> make_ucx() {
  return std::make_unique<UcxFabric>();
}
std::unique_ptr<Fabric> make_faultless() {
  return std::make_unique<FaultlessFabric>();
}

std::vector<std::byte> pattern(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; i += 8) {
    const std::uint64_t word = random.next();
    for (std::size_t j = i; j < std::min(count, i + 8); ++j)
      bytes[j] = static_cast<std::byte>(word >> (8 * (j - i)));
  }
  return bytes;
}

bool run_until(EventLoop& loop, const std::function<bool()>& done) {
  const TimePoint deadline = SteadyClock::now() + kTestTimeout;
  while (!done()) {
    if (SteadyClock::now() >= deadline) return false;
    loop.run_once(std::min(deadline, SteadyClock::now() + std::chrono::milliseconds(100)));
  }
  return true;
}

void drain(EventLoop& loop) {
  while (loop.run_once(TimePoint::min())) {
  }
}

Placement Recorder::place(Connection& connection, Bytes frame, std::size_t payload_bytes) {
  ++places;
  if (on_place) return on_place(connection, frame, payload_bytes);
  return Placement::receive(payloads.emplace_back(payload_bytes));
}

void Recorder::on_frame(Connection& connection, Incoming incoming) {
  frames.push_back(text_of(incoming.frame));
  payload_sizes.push_back(incoming.payload_bytes);
  if (incoming.segment) segments.push_back(std::move(*incoming.segment));
  if (on_message) on_message(connection, incoming);
}

void Recorder::on_closed(Connection& connection, Status why) {
  ends.push_back(std::move(why));
  if (on_end) on_end(connection);
}

}  // namespace capstan::transport::testing
