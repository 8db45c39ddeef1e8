#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "capstan/base/status.h"

namespace capstan::fetch {

struct Patience {
  long connect_seconds = 15;
  long stall_seconds = 30;  // of less than 1 KB/s
};

struct Transfer {
  std::string url;               // http or https, or the path of a file
  std::filesystem::path part;    // continued where the server knows how, else begun anew
  std::uint64_t most_bytes = 0;  // more are a wrong file; 0: any number
  Patience patience;
  std::function<bool()> interrupted;
  std::function<void(std::uint64_t done, std::uint64_t total)>
      progress;  // bytes of the file; total 0: unknown
};

// Brings one file, follows up to five redirects, and obeys the proxies that the environment names, as libcurl
// does. A failed Status means that this source did not work; `part` keeps what has come. Throws Failure for
// what another source would not mend: a full disk, an interrupt. Not thread-safe before its first return.
Status download(const Transfer& transfer);

// "http://…" or "https://…".
bool is_url(const std::string& source);

}  // namespace capstan::fetch
