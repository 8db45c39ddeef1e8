#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capstan/base/status.h"
#include "capstan/wire/messages.h"

namespace capstan::wire {

// One direction of a connection. A frame is the message behind its place in the order of sending, 64 bits
// from 0, so that the receiver knows one that came twice and notices one that is missing. Transports promise
// that neither happens; this is what a broken promise costs: a connection, not a job that waits for ever.

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
  // The next message; none for one that came before, to be ignored. Fails as malformed, or as closed where
  // a message before this one is missing: the connection is of no more use, a new one may be.
  Result<std::optional<Message>> read(Bytes frame);
  // The message of a frame whose payload is still to come; read() it when it is there.
  Result<std::optional<Message>> peek(Bytes frame) const;

 private:
  std::uint64_t next_ = 0;
};

}  // namespace capstan::wire
