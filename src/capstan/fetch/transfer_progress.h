#pragma once

#include <cstdint>
#include <string>

#include "capstan/base/time.h"

namespace capstan::fetch {

// How far the download of one file after the other is, as a line of text with rate and time left. Not
// thread-safe.
class TransferProgress {
 public:
  // `done` bytes of `total`, which is 0 where it is not known. The rate counts from the file's first call, so
  // what an earlier download left is no part of it, and again from where a download starts over.
  std::string line(const std::string& file, std::uint64_t done, std::uint64_t total, TimePoint now);

 private:
  std::string file_;
  std::uint64_t first_ = 0, last_ = 0;  // bytes of the file when its download began, and at the last call
  TimePoint begun_;
};

}  // namespace capstan::fetch
