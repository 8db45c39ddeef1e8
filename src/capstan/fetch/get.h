#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "capstan/fetch/catalogue.h"
#include "capstan/fetch/download.h"

namespace capstan::fetch {

struct GetOptions {
  std::filesystem::path data_dir = "data";
  std::string mirror;  // a URL or a folder, instead of the catalogue's; empty: those
  Patience patience;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& file, std::uint64_t done, std::uint64_t total)> progress;
  std::function<bool()> interrupted;
};

struct GetResult {
  bool fetched = false;  // else it was there already, and whole
  std::filesystem::path folder;
};

// Brings a dataset of files or of an archive into the folder of its name: what is there and as published
// stays, what has come in part goes on, each file appears only when it is whole and an archive's folder only
// when all of it is on disk. Throws UserError where the folder or the mirror cannot be meant, Failure where
// nobody has the files, the disk is full, another process is at it, or the user interrupts; what has come
// stays then. Not thread-safe; two processes may try at once.
GetResult get(const Entry& entry, const GetOptions& options);

}  // namespace capstan::fetch
