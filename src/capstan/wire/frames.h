#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capstan/status.h"
#include "capstan/wire/messages.h"

namespace capstan::wire {

// One direction of a connection. A frame is a 64-bit sequence number, from 0, followed by the message, so
// that the receiver detects duplicate and missing messages. Transports promise that neither happens; if one
// breaks the promise, the connection ends instead of the job waiting forever.

class FrameWriter {
 public:
  // Valid until the next call.
  Bytes write(const Message& message);

 private:
  std::uint64_t next_ = 0;
  std::vector<std::byte> frame_;
};

class FrameReader {
 public:
  // The next message; none for a duplicate, which is to be ignored. Fails as malformed, or as closed if an
  // earlier message is missing: then the peers may reconnect.
  Result<std::optional<Message>> read(Bytes frame);
  // The message of a frame whose payload has not arrived yet; read() it after the payload.
  Result<std::optional<Message>> peek(Bytes frame) const;

 private:
  std::uint64_t next_ = 0;
};

}  // namespace capstan::wire
