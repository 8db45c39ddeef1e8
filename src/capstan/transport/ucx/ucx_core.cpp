#include "capstan/transport/ucx/ucx_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace capstan::transport::ucx {
namespace {

// Data of at least this length uses the rendezvous protocol, which receives it in its destination without a
// copy. By default UCX on TCP sends any length eagerly and assembles it in memory of its own.
constexpr std::size_t kAnnouncedBytes = 1 << 16;

// Longer payloads are sent in pieces, several at once, each of which fits a core's cache while it is copied:
// 100 MB over TCP are a fifth faster than as one message, and faster than in pieces of half or twice the
// size. kMostPieces keeps one payload from filling the queue.
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kMostPieces = kMaxQueuedMessages / 4;

void on_sent_by_ucx(void* request, ucs_status_t status, void* user_data) {
  ucp_request_free(request);
  auto* transfer = static_cast<Transfer*>(user_data);
  const auto core = transfer->core;
  core->on_sent(transfer, status);
}

}  // namespace

bool is_goodbye(Bytes header) {
  Prefix prefix;
  if (header.size() < sizeof(prefix)) return false;
  std::memcpy(&prefix, header.data(), sizeof(prefix));
  return prefix.kind == Kind::kGoodbye;
}

UcxCore::UcxCore(ContextImpl& context, Endpoint& endpoint, std::string peer)
    : Core(context.loop()), context_(context), endpoint_(&endpoint), peer_(std::move(peer)) {
  endpoint.core = this;
}

void UcxCore::transmit(Outgoing message) {
  if (lost_) {
    if (message.sent) finish(std::move(message.sent), *lost_);
    return;
  }
  if (leaving_ >= kMaxQueuedMessages) {
    auto why = Status::unavailable(peer_ + " does not read its messages: " + std::to_string(leaving_) +
                                   " are queued");
    if (message.sent) finish(std::move(message.sent), why);
    return end_later(std::move(why));
  }
  if (sizeof(Prefix) + message.frame.size() <= context_.max_header_bytes()) {
    if (message.payload.size() > kPieceBytes) return post_pieces(std::move(message));
    return post(Kind::kMessage, message.frame, message.payload, {}, std::move(message.sent));
  }
  std::vector<std::byte> frame(message.frame.begin(), message.frame.end());
  if (message.payload.empty())
    return post(Kind::kLongFrame, {}, {}, std::move(frame), std::move(message.sent));
  post(Kind::kFrameAhead, {}, {}, std::move(frame), nullptr);
  post(Kind::kPayload, {}, message.payload, {}, std::move(message.sent));
}

void UcxCore::post_pieces(Outgoing message) {
  const std::size_t bytes = std::max(kPieceBytes, message.payload.size() / kMostPieces + 1);
  const std::size_t pieces = (message.payload.size() + bytes - 1) / bytes;
  // `sent` runs when the last piece is sent, with the first failure.
  struct Unsent {
    std::size_t left;
    Status status;
    Sent sent;
  };
  const auto unsent = std::make_shared<Unsent>(Unsent{pieces, {}, std::move(message.sent)});
  const auto piece_sent = [unsent](const Status& status) {
    if (unsent->status.is_ok()) unsent->status = status;
    if (--unsent->left == 0 && unsent->sent) unsent->sent(unsent->status);
  };
  post(Kind::kPieces, message.frame, {}, {}, nullptr, message.payload.size());
  for (std::size_t at = 0; at < message.payload.size(); at += bytes) {
    post(Kind::kPiece, {}, message.payload.subspan(at, std::min(bytes, message.payload.size() - at)), {},
         piece_sent, at);
  }
}

void UcxCore::post(Kind kind, Bytes frame, Bytes data, std::vector<std::byte> own_data, Sent sent,
                   std::uint64_t place) {
  Transfer* transfer = context_.take_transfer();
  transfer->core = std::static_pointer_cast<UcxCore>(shared_from_this());
  transfer->data = std::move(own_data);
  transfer->sent = std::move(sent);
  transfer->has_payload = !data.empty();
  if (data.empty()) data = transfer->data;

  const Prefix prefix{kMagic, kind, next_to_send_++, place};
  const Bytes head = std::as_bytes(std::span(&prefix, 1));
  transfer->header.assign(head.begin(), head.end());
  transfer->header.insert(transfer->header.end(), frame.begin(), frame.end());

  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = &on_sent_by_ucx;
  param.user_data = transfer;
  // REPLY gives the receiver the endpoint, by which it finds the connection.
  param.flags = UCP_AM_SEND_FLAG_REPLY;
  param.flags |= data.size() >= kAnnouncedBytes ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  ++leaving_;
  payloads_leaving_ += transfer->has_payload ? 1 : 0;
  const ucs_status_ptr_t request = ucp_am_send_nbx(endpoint_->handle, kMessageId, transfer->header.data(),
                                                   transfer->header.size(), data.data(), data.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) on_sent(transfer, UCS_PTR_STATUS(request));
}

void UcxCore::on_sent(Transfer* transfer, ucs_status_t status) {
  --leaving_;
  payloads_leaving_ -= transfer->has_payload ? 1 : 0;
  if (transfer->sent) {
    finish(std::move(transfer->sent), status == UCS_OK ? Status::ok() : to_status(status, peer_, true));
  }
  context_.give_back(transfer);
  if (status != UCS_OK && endpoint_ != nullptr) on_lost(status);
}

void UcxCore::on_lost(ucs_status_t status) {
  lose(to_status(status, peer_, was_heard_));
}

void UcxCore::lose(Status why) {
  if (lost_) return;
  lost_ = std::move(why);
  announce();
}

void UcxCore::announce() {
  if (std::exchange(event_posted_, true)) return;
  context_.later([self = std::static_pointer_cast<UcxCore>(shared_from_this())] { self->on_event(); });
}

void UcxCore::on_event() {
  event_posted_ = false;
  if (is_open() && has_handler()) advance();
  if (is_open() && lost_ && has_handler()) end(*lost_);
}

// A goodbye is delivered after everything sent before it, and its answer proves that all was read; UCX's own
// close uses another socket and may overtake data. But memory of the caller or the handler must not be in use
// when this returns; if it is, everything is cancelled.
void UcxCore::shut_down(std::vector<Sent>&) {
  const auto self = shared_from_this();
  Endpoint& endpoint = *endpoint_;
  const bool cancel = must_cancel();
  if (!cancel) drop_arrivals();
  if (cancel || lost_) {
    // The peer waits for this answer; UCX's own notice arrives later.
    if (peer_said_goodbye_) post(Kind::kGoodbye, {}, {}, {}, nullptr);
    endpoint_ = nullptr;
    context_.close_now(endpoint);
    if (cancel) {
      context_.wait_until([this] { return !must_cancel(); });
      drop_arrivals();
    }
    return;
  }
  post(Kind::kGoodbye, {}, {}, {}, nullptr);
  endpoint_ = nullptr;
  if (lost_) {
    context_.close_now(endpoint);
  } else {
    context_.close_politely(endpoint);
  }
}

}  // namespace capstan::transport::ucx
