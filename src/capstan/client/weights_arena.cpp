#include "capstan/client/weights_arena.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/mman.h>

#include "capstan/user_error.h"

namespace capstan::client {

std::unique_ptr<WeightsArena> WeightsArena::of_server_segments(std::uint64_t elements) {
  std::unique_ptr<WeightsArena> arena(new WeightsArena);
  arena->elements_ = elements;
  arena->reserved_bytes_ = elements * sizeof(float);
  void* base =
      ::mmap(nullptr, arena->reserved_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw UserError(fmt::format("cannot allocate {} bytes for the weights", arena->reserved_bytes_));
  arena->base_ = static_cast<float*>(base);
  return arena;
}

std::unique_ptr<WeightsArena> WeightsArena::own_segment(std::uint64_t elements) {
  std::unique_ptr<WeightsArena> arena(new WeightsArena);
  arena->elements_ = elements;
  arena->own_ =
      transport::Segment::create(elements * sizeof(float), transport::Segment::PeerMay::kReadAndWrite);
  arena->base_ = arena->own_.floats().data();
  return arena;
}

WeightsArena::~WeightsArena() {
  if (reserved_bytes_ > 0) ::munmap(base_, reserved_bytes_);
}

std::span<float> WeightsArena::receivable(Range range) {
  const bool is_laid =
      std::ranges::any_of(laid_, [&](const auto& laid) { return laid.first.begin == range.begin; });
  return is_laid ? std::span<float>() : std::span(base_ + range.begin, range.size());
}

Status WeightsArena::lay(Range range, transport::Segment segment) {
  if (range.size() == 0) return Status::ok();
  if (segment.size() != range.size() * sizeof(float))
    return Status::malformed("a server's segment does not have the size of its shard");
  if (auto bad = segment.move_to(base_ + range.begin); !bad.is_ok()) return bad;
  laid_.emplace_back(range, std::move(segment));
  return Status::ok();
}

}  // namespace capstan::client
