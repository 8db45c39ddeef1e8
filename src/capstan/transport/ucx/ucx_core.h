#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "capstan/transport/core.h"
#include "capstan/transport/ucx/context.h"

namespace capstan::transport::ucx {

// The kinds of active messages. The header of each is a Prefix, followed by the frame if it fits.
enum class Kind : std::uint32_t {
  kMessage,     // header: frame; data: payload, if any
  kLongFrame,   // data: frame
  kFrameAhead,  // data: frame of the next kPayload
  kPayload,     // data: payload of the last kFrameAhead
  kPieces,      // header: frame; its payload follows as kPiece messages
  kPiece,       // data: a part of that payload
  kGoodbye,     // the last message: the sender closed
};

inline constexpr std::uint32_t kMagic = 0x58435043;  // "CPCX"

struct Prefix {
  std::uint32_t magic = kMagic;
  Kind kind = Kind::kMessage;
  std::uint64_t sequence = 0;  // UCX delivers a small message before a large one that was sent earlier
  std::uint64_t place = 0;     // kPieces: bytes of the whole payload; kPiece: offset in it
};

bool is_goodbye(Bytes header);

// One connection. Owned by the loop's thread; not thread-safe. on_arrival and on_lost are called from within
// UCX; they only record the event and call no handler.
class UcxCore final : public Core {
 public:
  UcxCore(ContextImpl& context, Endpoint& endpoint, std::string peer);

  bool is_mid_payload() const override { return receiving_ > 0 || pieces_missing_ > 0; }
  bool shares_memory() const override { return false; }
  std::string peer() const override { return peer_; }
  const char* kind() const override { return "ucx"; }

  // `is_announced`: the data is still at the peer (rendezvous), and `data` is UCX's descriptor of it.
  ucs_status_t on_arrival(Bytes header, void* data, std::size_t data_bytes, bool is_announced);
  void on_lost(ucs_status_t status);
  void on_sent(Transfer* transfer, ucs_status_t status);

 protected:
  void start() override { announce(); }
  void transmit(Outgoing message) override;
  void shut_down(std::vector<Sent>& unsent) override;

 private:
  // A message that is not delivered yet. Its address does not change while UCX receives its data.
  struct Arrival {
    enum class State { kMissing, kWaiting, kReceiving, kComplete };
    State state = State::kMissing;
    Kind kind = Kind::kMessage;
    std::vector<std::byte> frame;
    std::uint64_t place = 0;
    std::size_t data_bytes = 0;
    std::vector<std::byte> eager;     // data that came with the message
    void* announced = nullptr;        // data that is still at the peer
    std::shared_ptr<UcxCore> keeper;  // while receiving
  };

  void post(Kind kind, Bytes frame, Bytes data, std::vector<std::byte> own_data, Sent sent,
            std::uint64_t place = 0);
  void post_pieces(Outgoing message);
  bool must_cancel() const { return payloads_leaving_ > 0 || receiving_ > 0; }

  void announce();
  void on_event();
  void advance();
  bool begin(Arrival& arrival);
  bool begin_payload(Arrival& arrival);
  bool begin_pieces(Arrival& arrival);
  bool begin_piece(Arrival& arrival);
  bool take_data(Arrival& arrival, const Placement& placement);
  bool receive(Arrival& arrival, MutableBytes destination);
  void begin_followers();
  bool complete(Arrival arrival);
  void lose(Status why);
  void drop_arrivals();
  static void on_received(void* request, ucs_status_t status, size_t bytes, void* user_data);

  ContextImpl& context_;
  Endpoint* endpoint_;  // null once shut down
  const std::string peer_;
  bool event_posted_ = false;
  bool was_heard_ = false;
  bool peer_said_goodbye_ = false;
  std::optional<Status> lost_;  // the reason, until all earlier messages are delivered

  std::uint64_t next_to_send_ = 0;
  std::size_t leaving_ = 0;           // messages that UCX has not completed
  std::size_t payloads_leaving_ = 0;  // those of them that use a caller's memory

  std::uint64_t first_sequence_ = 0;  // of arrivals_.front()
  std::deque<Arrival> arrivals_;
  std::size_t receiving_ = 0;
  std::vector<std::byte> frame_ahead_;

  // The payload that arrives in pieces.
  std::vector<std::byte> pieces_frame_;
  std::optional<Placement> pieces_placement_;
  std::uint64_t pieces_bytes_ = 0;
  std::uint64_t pieces_begun_ = 0;    // bytes of the pieces that UCX has a destination for, in order
  std::uint64_t pieces_missing_ = 0;  // bytes that have not arrived
};

}  // namespace capstan::transport::ucx
