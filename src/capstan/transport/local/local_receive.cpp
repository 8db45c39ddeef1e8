#include <algorithm>
#include <cstring>
#include <utility>

#include "capstan/transport/local/local_core.h"

// The receiving half of LocalCore.
namespace capstan::transport::local {
namespace {

constexpr std::size_t kWasteBytes = 1 << 18;

}  // namespace

void LocalCore::read() {
  for (int call = 0; call < kCallsPerTurn; ++call) {
    MutableBytes target = payload_target();
    const bool into_payload = !target.empty();
    if (!into_payload) {
      make_room(state_ == State::kFrame ? header_.frame_bytes : sizeof(Header));
      target = MutableBytes(buffer_).subspan(filled_);
      // A header whose descriptor has arrived is read alone: the next message may have a descriptor too.
      if (fd_) target = target.first(std::min(target.size(), sizeof(Header) - buffered()));
    }
    Read got = read_some(socket_.get(), target);
    if (got.outcome == Read::Outcome::kNothingNow) return;
    if (got.outcome == Read::Outcome::kEnd) return end(Status::closed(peer_ + " closed the connection"));
    note_arrival();
    const bool was_short = got.bytes < target.size();
    if (into_payload) {
      if (got.fd || got.surplus_fds) return end(Status::malformed("received a descriptor within a payload"));
      payload_received_ += got.bytes;
      if (payload_received_ == header_.payload_bytes && !complete_message()) return;
    } else if (!take(got)) {
      return;
    }
    // A short read has probably emptied the socket; otherwise the level-triggered watch fires again.
    if (was_short) return;
  }
}

// Adds bytes to the buffer and processes all its messages. False once the connection is closed.
bool LocalCore::take(Read& got) {
  filled_ += got.bytes;
  fd_is_due_ = static_cast<bool>(fd_);
  if (got.surplus_fds || (fd_ && got.fd)) {
    end(Status::malformed("received more descriptors than segments"));
    return false;
  }
  if (got.fd) fd_ = std::move(got.fd);
  if (!parse()) return false;
  // The descriptor was attached to the last bytes read: only a header that is still incomplete can claim it.
  if (fd_ && (state_ != State::kHeader || buffered() == 0)) {
    end(Status::malformed("received a descriptor without a segment message"));
    return false;
  }
  return true;
}

bool LocalCore::parse() {
  for (;;) {
    if (state_ == State::kHeader) {
      if (buffered() < sizeof(Header)) return true;
      if (!begin_message()) return false;
    }
    if (state_ == State::kFrame) {
      if (buffered() < header_.frame_bytes) return true;
      if (header_.payload_bytes == 0) {
        if (!complete_message()) return false;
        continue;
      }
      if (!begin_payload()) return false;
    }
    const std::size_t step = std::min(buffered(), header_.payload_bytes - payload_received_);
    if (placement_.action == Placement::Action::kReceive) {
      std::memcpy(placement_.destination.data() + payload_received_, buffer_.data() + parsed_, step);
    }
    parsed_ += step;
    payload_received_ += step;
    if (payload_received_ < header_.payload_bytes) return true;
    if (!complete_message()) return false;
  }
}

bool LocalCore::begin_message() {
  std::memcpy(&header_, buffer_.data() + parsed_, sizeof(Header));
  parsed_ += sizeof(Header);
  state_ = State::kFrame;
  Status status = check(header_);
  const bool has_segment = (header_.flags & kHasSegment) != 0;
  if (status && has_segment != static_cast<bool>(fd_) && (has_segment || fd_is_due_)) {
    status = Status::malformed(has_segment ? "received a segment message without its descriptor"
                                           : "received a descriptor without a segment message");
  }
  if (status && has_segment) {
    fd_is_due_ = false;
    auto mapped = Segment::map(std::move(fd_));
    if (mapped) {
      segment_ = std::move(*mapped);
    } else {
      status = mapped.status();
    }
  }
  if (!status) end(status.within(peer_));
  return status.is_ok();
}

bool LocalCore::begin_payload() {
  const Bytes frame = Bytes(buffer_).subspan(parsed_, header_.frame_bytes);
  frame_.assign(frame.begin(), frame.end());
  parsed_ += frame.size();
  const auto placement = place(frame_, header_.payload_bytes);
  if (!placement) return false;
  placement_ = *placement;
  payload_received_ = 0;
  state_ = State::kPayload;
  return true;
}

bool LocalCore::complete_message() {
  Incoming incoming;
  incoming.segment = std::exchange(segment_, std::nullopt);
  incoming.payload_bytes = header_.payload_bytes;
  if (state_ == State::kPayload) {
    incoming.frame = frame_;
  } else {
    incoming.frame = Bytes(buffer_).subspan(parsed_, header_.frame_bytes);
    parsed_ += header_.frame_bytes;
  }
  state_ = State::kHeader;
  return deliver(std::move(incoming));
}

// Moves the unconsumed bytes to the front if `bytes` more would not fit after them.
void LocalCore::make_room(std::size_t bytes) {
  if (buffered() == 0) parsed_ = filled_ = 0;
  if (parsed_ + bytes <= buffer_.size() && filled_ < buffer_.size()) return;
  std::memmove(buffer_.data(), buffer_.data() + parsed_, buffered());
  filled_ -= parsed_;
  parsed_ = 0;
  if (buffer_.size() < bytes) buffer_.resize(bytes);
}

// The destination of payload bytes, read without a copy; empty outside of a payload.
MutableBytes LocalCore::payload_target() {
  if (state_ != State::kPayload) return {};
  if (placement_.action == Placement::Action::kReceive)
    return placement_.destination.subspan(payload_received_);
  if (waste_.empty()) waste_.resize(kWasteBytes);
  return MutableBytes(waste_).first(std::min(waste_.size(), header_.payload_bytes - payload_received_));
}

}  // namespace capstan::transport::local
