#pragma once

#include <cstdint>
#include <string>

#include "capstan/base/time.h"

namespace capstan::fetch {

// The progress of the current download as a line of text, with rate and remaining time. Not thread-safe.
class TransferProgress {
 public:
  // `done` bytes of `total`, which is 0 if it is not known. The rate counts from the file's first call, so it
  // excludes bytes of an earlier download, and restarts when a download starts over.
  std::string line(const std::string& file, std::uint64_t done, std::uint64_t total, TimePoint now);

 private:
  std::string file_;
  std::uint64_t first_ = 0, last_ = 0;  // bytes of the file when its download began, and at the last call
  TimePoint begun_;
};

}  // namespace capstan::fetch
