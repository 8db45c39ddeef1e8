#include "capstan/wire/frames.h"

#include <cstring>

#include <fmt/format.h>

namespace capstan::wire {
namespace {

std::optional<std::uint64_t> place_of(Bytes frame) {
  std::uint64_t place = 0;
  if (frame.size() < sizeof place) return {};
  std::memcpy(&place, frame.data(), sizeof place);
  return place;
}

}  // namespace

Bytes FrameWriter::write(const Message& message) {
  frame_.resize(sizeof next_);
  std::memcpy(frame_.data(), &next_, sizeof next_);
  append(message, frame_);
  ++next_;
  return frame_;
}

Result<std::optional<Message>> FrameReader::peek(Bytes frame) const {
  const auto place = place_of(frame);
  if (!place) return Status::malformed(fmt::format("a frame of {} bytes is too short", frame.size()));
  if (*place < next_) return std::optional<Message>();
  auto message = decode(frame.subspan(sizeof *place));
  if (!message) return message.status();
  return std::optional(std::move(*message));
}

Result<std::optional<Message>> FrameReader::read(Bytes frame) {
  auto message = peek(frame);
  if (!message || !*message) return message;
  const auto missing = *place_of(frame) - next_;
  if (missing > 0) return Status::closed(fmt::format("{} messages are missing", missing));
  ++next_;
  return message;
}

}  // namespace capstan::wire
