#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "capstan/wire/frames.h"

namespace capstan::testing {

// Decodes arbitrary bytes. A decoded message must encode to the same bytes; otherwise aborts. Returns whether
// the bytes were a message.
inline bool check_decode(wire::Bytes frame) {
  wire::FrameReader reader;
  (void)reader.peek(frame);
  (void)reader.read(frame);
  const auto message = wire::decode(frame);
  if (!message) return false;
  const auto again = wire::encode(*message);
  if (!std::ranges::equal(again, frame)) {
    std::fprintf(stderr, "a %s has two spellings\n", wire::name_of(*message));
    std::abort();
  }
  if (const auto* join = std::get_if<wire::Join>(&*message)) {
    const auto layout = wire::from_wire(join->layout);
    if (layout && layout->size() < layout->parameters()) std::abort();
    if (layout) (void)wire::phases_from_wire(join->phases, *layout);
  }
  return true;
}

}  // namespace capstan::testing
