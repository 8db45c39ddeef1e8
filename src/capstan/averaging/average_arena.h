#pragma once

#include <memory>
#include <vector>

#include "capstan/averaging/buckets.h"
#include "capstan/transport/connection.h"

namespace capstan::averaging {

// The averages of a trainer's buckets. Those of a dense bucket are one array at a fixed address: the servers'
// parts are mapped side by side, or received there. The values of rows are read in a single server's memory;
// from several servers, they are copied to one list. Owned by a client, which serializes the calls for a
// bucket.
class AverageArena {
 public:
  AverageArena(const std::vector<Shape>& shapes, std::uint32_t servers);
  ~AverageArena();
  AverageArena(const AverageArena&) = delete;
  AverageArena& operator=(const AverageArena&) = delete;

  Range part(std::size_t bucket, std::uint32_t server) const { return parts_[bucket][server].range; }

  // Maps the memory of a server on this host.
  Status map(std::uint32_t server, transport::Segment segment);
  // The size of the payload with this many rows, 0 from a server on this host; and where it goes.
  std::size_t payload_bytes(std::size_t bucket, std::uint32_t server, std::size_t rows) const;
  transport::MutableBytes receive(std::size_t bucket, std::uint32_t server, std::size_t rows);

  // A server's part is complete. Fails if its rows are not increasing or not of its part.
  Status set_part(std::size_t bucket, std::uint32_t server, std::size_t rows);
  // All parts are complete: copies rows to one list if there are several servers.
  void unite(std::size_t bucket);
  // The whole average; of rows, as unite() has left it.
  Gradient average(std::size_t bucket) const { return averages_[bucket]; }

 private:
  struct Part {
    Range range;
    Gradient shared;                     // all of its memory, if the server is on this host
    std::vector<float> received;         // rows from other hosts
    std::vector<std::uint32_t> numbers;  // copied: a server may change its own memory at any time
    Gradient rows;                       // of the newest average
  };
  struct List {
    std::vector<std::uint32_t> rows;
    std::vector<float> values;
  };

  const std::vector<Shape> shapes_;
  const std::uint32_t servers_;
  const ArenaLayout layout_;  // of dense buckets; for rows only the address space is reserved
  float* base_ = nullptr;
  std::vector<std::vector<Part>> parts_;  // by bucket and server
  std::vector<Gradient> averages_;
  std::vector<List> lists_;
  std::vector<transport::Segment> segments_;
};

}  // namespace capstan::averaging
