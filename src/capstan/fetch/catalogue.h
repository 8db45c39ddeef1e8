#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::fetch {

// One file of a dataset on its mirrors.
struct RemoteFile {
  std::string name = {};
  std::uint64_t bytes = 0;        // 0: unknown
  std::string checksum;           // as published, "sha256:…" or "md5:…"; empty: none is published
  std::string unpacked_checksum;  // of a .gz file's contents: a file that was repacked is accepted too
};

enum class Kind {
  kFiles,    // separate files
  kArchive,  // one tar.gz, of which one folder is kept
  kBuiltIn,  // part of the program
  kOwn,      // the user's images
};

struct Entry {
  std::string name;
  Kind kind = Kind::kFiles;
  std::uint64_t classes = 0, images = 0;  // 0: any number
  std::vector<std::string> mirrors = {};  // URLs of folders with all files, tried in order
  std::vector<RemoteFile> files = {};
  std::string archive_folder = {};   // the archive's folder with the dataset
  std::uint64_t unpacked_bytes = 0;  // 0: about as much as the archive

  std::uint64_t bytes() const;  // of all files; 0 if the size of one is unknown
};

// Every dataset, in the order of the listing.
std::span<const Entry> catalogue();

// Throws UserError for an unknown name, with the nearest known one.
const Entry& find_entry(std::string_view name);

}  // namespace capstan::fetch
