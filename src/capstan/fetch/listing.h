#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/fetch/catalogue.h"

namespace capstan::fetch {

// The known datasets, and which of them are downloaded. A value.
struct Listing {
  struct Row {
    std::string name;
    std::uint64_t classes = 0, images = 0;  // 0: any number
    std::uint64_t bytes = 0;                // to download; 0: none, or unknown
    std::string here;    // downloaded: "yes", "no", "in part", "unknown", "built in", "your own"
    std::string folder;  // empty if nothing is downloaded
  };
  std::vector<Row> rows;

  std::string text() const;  // lines, without the end of the last
  Json json() const;
};
// Every dataset of the catalogue. Checks file names only, as presence() does.
Listing list_datasets(const std::filesystem::path& data_dir);

// A dataset that is part of the program: there is nothing to fetch or verify.
struct BuiltIn {
  std::string name;

  std::string text() const;
  Json json() const;
};
// None if the dataset is downloaded. Throws UserError if its images are the user's own.
std::optional<BuiltIn> built_in(const Entry& entry);

}  // namespace capstan::fetch
