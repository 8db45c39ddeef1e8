#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "capstan/transport/core.h"
#include "capstan/transport/local/framing.h"

namespace capstan::transport::local {

// System calls for one connection before the loop serves the others.
inline constexpr int kCallsPerTurn = 16;

// One connected socket. Owned by the loop's thread; not thread-safe.
class LocalCore final : public Core {
 public:
  LocalCore(EventLoop& loop, UniqueFd socket, std::string peer);

  bool is_mid_payload() const override { return state_ == State::kPayload; }
  bool shares_memory() const override { return true; }
  std::string peer() const override { return peer_; }
  const char* kind() const override { return "local"; }

 protected:
  void start() override;
  void transmit(Outgoing message) override;
  void shut_down(std::vector<Sent>& unsent) override;

 private:
  // A message that the socket did not accept completely.
  struct Queued {
    std::vector<std::byte> head;  // header and frame
    Bytes payload;
    Sent sent;
    UniqueFd fd;              // of the segment, until the first byte is sent
    std::size_t written = 0;  // of head and payload
  };

  void on_events(std::uint32_t events);

  void flush();
  bool write_queue();
  void mark_written(std::size_t bytes);
  void break_writing();
  void watch_writable(bool on);

  void read();
  bool take(Read& got);
  bool parse();
  bool begin_message();
  bool begin_payload();
  bool complete_message();
  std::size_t buffered() const { return filled_ - parsed_; }
  void make_room(std::size_t bytes);
  MutableBytes payload_target();

  UniqueFd socket_;
  const std::string peer_;
  bool watched_ = false;

  std::deque<Queued> queue_;
  bool watches_writable_ = false;
  bool write_broken_ = false;  // the peer accepts no more data; what it sent before is still to be read

  // Bytes that are read and not consumed: buffer_[parsed_, filled_).
  enum class State { kHeader, kFrame, kPayload };
  State state_ = State::kHeader;
  std::vector<std::byte> buffer_;
  std::size_t parsed_ = 0;
  std::size_t filled_ = 0;
  Header header_;
  UniqueFd fd_;             // received, and not yet claimed by a header
  bool fd_is_due_ = false;  // received by an earlier read: the next header must claim it
  std::optional<Segment> segment_;
  std::vector<std::byte> frame_;  // a copy while its payload arrives
  Placement placement_;
  std::size_t payload_received_ = 0;
  std::vector<std::byte> waste_;  // for discarded payloads
};

}  // namespace capstan::transport::local
