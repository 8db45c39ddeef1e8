#include <algorithm>
#include <cstring>
#include <utility>

#include "capstan/transport/ucx/ucx_core.h"

// The receiving half of UcxCore: restores the order in which messages were sent.
namespace capstan::transport::ucx {
namespace {

// Payloads of one connection that are received at the same time: enough to hide their round trips.
constexpr std::size_t kReceivingAtOnce = 8;

}  // namespace

ucs_status_t UcxCore::on_arrival(Bytes header, void* data, std::size_t data_bytes, bool is_announced) {
  if (lost_) return UCS_OK;
  was_heard_ = true;
  note_arrival();
  Prefix prefix;
  const bool is_whole = header.size() >= sizeof(prefix);
  if (is_whole) std::memcpy(&prefix, header.data(), sizeof(prefix));
  if (!is_whole || prefix.magic != kMagic || prefix.kind > Kind::kGoodbye) {
    lose(Status::malformed("received bytes that are not a message from " + peer_));
    return UCS_OK;
  }
  const bool is_long_frame = prefix.kind == Kind::kLongFrame || prefix.kind == Kind::kFrameAhead;
  if (data_bytes > (is_long_frame ? kMaxFrameBytes : kMaxPayloadBytes)) {
    lose(Status::malformed(peer_ + " announced " + std::to_string(data_bytes) + " bytes"));
    return UCS_OK;
  }
  const std::uint64_t place_in_line = prefix.sequence - first_sequence_;
  if (place_in_line >= kMaxQueuedMessages) {
    lose(prefix.sequence < first_sequence_
             ? Status::malformed(peer_ + " sent a message twice")
             : Status::unavailable(std::to_string(kMaxQueuedMessages) + " messages from " + peer_ +
                                   " wait for an incomplete one"));
    return UCS_OK;
  }
  if (arrivals_.size() <= place_in_line) arrivals_.resize(place_in_line + 1);
  Arrival& arrival = arrivals_[place_in_line];
  if (arrival.state != Arrival::State::kMissing) {
    lose(Status::malformed(peer_ + " sent a message twice"));
    return UCS_OK;
  }
  arrival.state = Arrival::State::kWaiting;
  arrival.kind = prefix.kind;
  const Bytes frame = header.subspan(sizeof(prefix));
  arrival.frame.assign(frame.begin(), frame.end());
  arrival.place = prefix.place;
  arrival.data_bytes = data_bytes;
  announce();
  if (is_announced) {
    arrival.announced = data;
    return UCS_INPROGRESS;  // UCX keeps the data until it is received or released
  }
  const auto* bytes = static_cast<const std::byte*>(data);
  arrival.eager.assign(bytes, bytes + data_bytes);
  return UCS_OK;
}

// Delivers from the front of the queue. Every step may call a handler that closes the connection.
void UcxCore::advance() {
  while (!arrivals_.empty()) {
    Arrival& front = arrivals_.front();
    if (front.state == Arrival::State::kMissing) return;
    if (front.state == Arrival::State::kWaiting && !begin(front)) return;
    if (front.state == Arrival::State::kReceiving) return begin_followers();
    Arrival arrival = std::move(front);
    arrivals_.pop_front();
    ++first_sequence_;
    if (!complete(std::move(arrival))) return;
  }
}

// While the front's payload arrives, those of the next messages may arrive too. A frame without a payload is
// a barrier: it is delivered before place() is called for any later message.
void UcxCore::begin_followers() {
  for (std::size_t i = 1; i < arrivals_.size() && receiving_ < kReceivingAtOnce; ++i) {
    Arrival& arrival = arrivals_[i];
    const bool has_payload = arrival.kind == Kind::kMessage || arrival.kind == Kind::kPiece;
    if (!has_payload || arrival.data_bytes == 0 || arrival.state == Arrival::State::kMissing) return;
    if (arrival.state == Arrival::State::kWaiting && !begin(arrival)) return;
  }
}

// False once the connection is closed or lost.
bool UcxCore::begin(Arrival& arrival) {
  // The handler may free the destination of the pieces when it takes another message.
  if (pieces_begun_ < pieces_bytes_ && arrival.kind != Kind::kPiece) {
    lose(Status::malformed(peer_ + " sent another message in the middle of a payload in pieces"));
    return false;
  }
  switch (arrival.kind) {
    case Kind::kLongFrame:
    case Kind::kFrameAhead:
      if (arrival.announced == nullptr) {
        arrival.frame = std::move(arrival.eager);
        break;
      }
      arrival.frame.resize(arrival.data_bytes);
      return receive(arrival, arrival.frame);
    case Kind::kPayload:
      arrival.frame = std::move(frame_ahead_);
      [[fallthrough]];
    case Kind::kMessage:
      if (arrival.data_bytes > 0) return begin_payload(arrival);
      break;
    case Kind::kPieces:
      return begin_pieces(arrival);
    case Kind::kPiece:
      return begin_piece(arrival);
    case Kind::kGoodbye:
      break;
  }
  arrival.state = Arrival::State::kComplete;
  return true;
}

bool UcxCore::begin_pieces(Arrival& arrival) {
  if (pieces_missing_ > 0 || arrival.place == 0 || arrival.place > kMaxPayloadBytes ||
      arrival.data_bytes > 0) {
    lose(Status::malformed(peer_ + " announced an invalid payload of " + std::to_string(arrival.place) +
                           " bytes"));
    return false;
  }
  pieces_placement_ = place(arrival.frame, arrival.place);
  if (!pieces_placement_) return false;
  pieces_frame_ = arrival.frame;
  pieces_bytes_ = pieces_missing_ = arrival.place;
  pieces_begun_ = 0;
  arrival.state = Arrival::State::kComplete;
  return true;
}

bool UcxCore::begin_piece(Arrival& arrival) {
  if (!pieces_placement_ || arrival.data_bytes == 0 || arrival.place != pieces_begun_ ||
      arrival.data_bytes > pieces_bytes_ - pieces_begun_) {
    lose(Status::malformed(peer_ + " sent a piece that belongs to no payload"));
    return false;
  }
  pieces_begun_ += arrival.data_bytes;
  auto placement = *pieces_placement_;
  if (placement.action == Placement::Action::kReceive) {
    placement.destination = placement.destination.subspan(arrival.place, arrival.data_bytes);
  }
  return take_data(arrival, placement);
}

bool UcxCore::begin_payload(Arrival& arrival) {
  const auto placement = place(arrival.frame, arrival.data_bytes);
  return placement && take_data(arrival, *placement);
}

bool UcxCore::take_data(Arrival& arrival, const Placement& placement) {
  const bool is_wanted = placement.action == Placement::Action::kReceive;
  if (is_wanted && arrival.announced != nullptr) return receive(arrival, placement.destination);
  if (is_wanted) std::memcpy(placement.destination.data(), arrival.eager.data(), arrival.data_bytes);
  if (arrival.announced != nullptr)
    ucp_am_data_release(context_.worker(), std::exchange(arrival.announced, nullptr));
  arrival.eager = {};
  arrival.state = Arrival::State::kComplete;
  return true;
}

bool UcxCore::receive(Arrival& arrival, MutableBytes destination) {
  arrival.state = Arrival::State::kReceiving;
  arrival.keeper = std::static_pointer_cast<UcxCore>(shared_from_this());
  ++receiving_;
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv_am = &UcxCore::on_received;
  param.user_data = &arrival;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(context_.worker(), std::exchange(arrival.announced, nullptr), destination.data(),
                           destination.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return true;
  on_received(nullptr, UCS_PTR_STATUS(request), destination.size(), &arrival);
  return !lost_;
}

void UcxCore::on_received(void* request, ucs_status_t status, size_t, void* user_data) {
  if (request != nullptr) ucp_request_free(request);
  auto& arrival = *static_cast<Arrival*>(user_data);
  const auto self = std::exchange(arrival.keeper, nullptr);
  --self->receiving_;
  self->note_arrival();
  arrival.state = Arrival::State::kComplete;
  if (status != UCS_OK && self->endpoint_ != nullptr) self->on_lost(status);
  if (status != UCS_OK) arrival.state = Arrival::State::kMissing;  // is never delivered
  self->announce();
}

bool UcxCore::complete(Arrival arrival) {
  if (arrival.kind == Kind::kGoodbye) {
    peer_said_goodbye_ = true;
    lost_ = Status::closed(peer_ + " closed the connection");
    return false;
  }
  if (arrival.kind == Kind::kFrameAhead) {
    frame_ahead_ = std::move(arrival.frame);
    return true;
  }
  if (arrival.kind == Kind::kPieces) return true;
  Incoming incoming;
  if (arrival.kind == Kind::kPiece) {
    pieces_missing_ -= std::min<std::uint64_t>(pieces_missing_, arrival.data_bytes);
    if (pieces_missing_ > 0) return true;
    pieces_placement_.reset();
    const auto frame = std::move(pieces_frame_);
    incoming.frame = frame;
    incoming.payload_bytes = pieces_bytes_;
    return deliver(std::move(incoming));
  }
  incoming.frame = arrival.frame;
  const bool has_payload = arrival.kind == Kind::kMessage || arrival.kind == Kind::kPayload;
  incoming.payload_bytes = has_payload ? arrival.data_bytes : 0;
  return deliver(std::move(incoming));
}

void UcxCore::drop_arrivals() {
  if (receiving_ > 0) return;  // UCX still writes to them; the destructor frees them
  for (auto& arrival : arrivals_) {
    if (arrival.announced != nullptr) ucp_am_data_release(context_.worker(), arrival.announced);
  }
  arrivals_.clear();
}

}  // namespace capstan::transport::ucx
