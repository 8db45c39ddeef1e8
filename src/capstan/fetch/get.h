#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "capstan/base/json.h"
#include "capstan/fetch/catalogue.h"
#include "capstan/fetch/download.h"

namespace capstan::fetch {

struct GetOptions {
  std::filesystem::path data_dir = "data";
  std::string mirror;  // a URL or a folder; empty: the catalogue's mirrors
  Timeouts timeouts;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& file, std::uint64_t done, std::uint64_t total)> progress;
  std::function<bool()> interrupted;
};

struct GetResult {
  std::string name;
  bool fetched = false;  // else it was there already, and complete
  std::filesystem::path folder;

  std::string text() const;
  Json json() const;
};

// Downloads a dataset of files or of an archive into the folder with its name. Files that are as published
// stay, partial downloads are resumed; a file appears under its name only when it is complete, an archive's
// folder only when all of it is on disk. Throws UserError for a wrong folder or mirror; Failure if no mirror
// has the files, the disk is full, another process works on the dataset, or the user interrupts. Partial
// downloads are then kept. Not thread-safe; several processes may call it at once.
GetResult get(const Entry& entry, const GetOptions& options);

}  // namespace capstan::fetch
