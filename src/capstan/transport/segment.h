#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "capstan/base/unique_fd.h"
#include "capstan/status.h"

namespace capstan::transport {

// Memory that two processes of one host map: an anonymous file (memfd), sealed against resizing, so that no
// peer can make an access fault. Owns its mapping and its descriptor. The object is not thread-safe; access
// to the memory is up to its users.
class Segment {
 public:
  enum class PeerMay { kRead, kReadAndWrite };

  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  // New zeroed memory. With kRead the kernel refuses every later writable mapping of it. Throws UserError if
  // the memory cannot be allocated.
  static Segment create(std::size_t bytes, PeerMay peer_may);

  // Maps a segment that a peer sent after checking its seals; writable if the peer allows it.
  static Result<Segment> map(UniqueFd fd);
  // A second mapping of the same memory, as a peer would have it (in-process transports, tests).
  Result<Segment> map_again() const;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), size_}; }
  std::span<float> floats() const { return {static_cast<float*>(address_), size_ / sizeof(float)}; }
  std::size_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  bool is_writable() const { return writable_; }
  explicit operator bool() const { return address_ != nullptr; }

  // Moves this mapping to a page-aligned address inside a reservation of the caller, which also unmaps it.
  Status move_to(void* at);
  // Maps a part of this memory once more, read-only, at a page-aligned address inside a reservation of the
  // caller, which also unmaps it. `offset` is a multiple of the page size.
  Status map_part(std::size_t offset, std::size_t bytes, void* at) const;

 private:
  UniqueFd fd_;
  void* address_ = nullptr;
  std::size_t size_ = 0;
  bool writable_ = false;
  bool owns_mapping_ = true;
};

}  // namespace capstan::transport
