#pragma once

#include <memory>
#include <vector>

#include "capstan/averaging/buckets.h"
#include "capstan/transport/connection.h"

namespace capstan::averaging {

// One trainer's gradients as a server sees them. On one host they are in the trainer's segment, mapped here;
// otherwise in buffers of the server, allocated on first use, whose addresses do not change. Nothing that a
// trainer names is used before it is checked; numbers of rows are copied first, because a trainer may change
// its own memory at any time. Owned by the server's loop; gradients are also read by its threads.
class TrainerMemory {
 public:
  // `parts`: by bucket, what the server holds of it.
  TrainerMemory(const std::vector<Shape>& shapes, std::vector<Range> parts);

  // Takes the segment of the trainer's arena. The first one stays.
  Status share(transport::Segment segment);

  // Fails if the bucket's rows or its payload have an impossible size.
  Status check(const wire::Bucket& bucket, std::size_t payload_bytes) const;
  // Where the payload of a checked bucket goes.
  transport::MutableBytes destination(const wire::Bucket& bucket);
  // The gradient of a checked bucket that has arrived completely; valid until the next one. Fails if its rows
  // are not increasing or not of this server's part.
  Result<Gradient> gradient(const wire::Bucket& bucket);

 private:
  std::size_t payload_elements(const wire::Bucket& bucket) const;
  float* buffer(std::size_t bucket);

  const std::vector<Shape> shapes_;
  const std::vector<Range> parts_;
  const ArenaLayout layout_;
  transport::Segment shared_;
  std::vector<std::unique_ptr<float[]>> buffers_;  // by bucket, if memory is not shared
  std::vector<std::vector<std::uint32_t>> rows_;   // by bucket, copied
};

}  // namespace capstan::averaging
