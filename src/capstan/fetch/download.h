#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "capstan/status.h"

namespace capstan::fetch {

struct Timeouts {
  long connect_seconds = 15;
  long stall_seconds = 30;  // below 1 KB/s
};

struct Transfer {
  std::string url;               // http or https, or the path of a file
  std::filesystem::path part;    // resumed if the server supports ranges, otherwise overwritten
  std::uint64_t most_bytes = 0;  // a longer file is an error; 0: no limit
  Timeouts timeouts;
  std::function<bool()> interrupted;
  // In bytes of the file; total 0: unknown.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

// Downloads one file; follows up to five redirects and uses libcurl's proxy environment variables. A failed
// Status means that this source failed; `part` keeps the received bytes. Throws Failure for errors that
// another source cannot fix: a full disk, an interrupt. The first call must return before other threads call
// it.
Status download(const Transfer& transfer);

// "http://…" or "https://…".
bool is_url(const std::string& source);

}  // namespace capstan::fetch
