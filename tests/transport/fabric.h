#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

namespace capstan::transport::testing {

inline constexpr auto kTestTimeout = std::chrono::seconds(20);

// One transport under test, as the suite needs it.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual std::unique_ptr<Listener> listen(EventLoop& loop, Accept accept) = 0;  // on any free address
  virtual std::unique_ptr<Listener> listen_at(EventLoop& loop, const std::string& address, Accept accept) = 0;
  virtual Result<std::unique_ptr<Connection>> connect(EventLoop& loop, const std::string& address) = 0;
};

// The transports: a name, how to make one, and whether both ends see the same memory.
struct Kind {
  const char* name;
  std::unique_ptr<Fabric> (*make)();
  bool shares_memory;
};
inline std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

std::unique_ptr<Fabric> make_loopback_shared();
std::unique_ptr<Fabric> make_loopback_copying();
std::unique_ptr<Fabric> make_local();
std::unique_ptr<Fabric> make_ucx();
std::unique_ptr<Fabric> make_faultless();  // faulty without faults, over loopback

inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes that identify their source.
std::vector<std::byte> pattern(std::size_t count, std::uint64_t seed);

// Runs the loop until `done`; false after kTestTimeout.
bool run_until(EventLoop& loop, const std::function<bool()>& done);
// Runs what is ready, without sleeping, for things that must not happen. What another thread or process still
// does is not ready: wait for an event that follows it first.
void drain(EventLoop& loop);

// Records the events of a connection. Payloads are received in its own buffers unless `on_place` is set.
class Recorder : public Handler {
 public:
  Placement place(Connection& connection, Bytes frame, std::size_t payload_bytes) override;
  void on_frame(Connection& connection, Incoming incoming) override;
  void on_closed(Connection& connection, Status why) override;

  std::function<Placement(Connection&, Bytes, std::size_t)> on_place;
  std::function<void(Connection&, const Incoming&)> on_message;
  std::function<void(Connection&)> on_end;

  std::vector<std::string> frames;
  std::deque<std::vector<std::byte>> payloads;
  std::vector<std::size_t> payload_sizes;
  std::vector<Segment> segments;
  std::vector<Status> ends;
  int places = 0;
};

}  // namespace capstan::transport::testing
