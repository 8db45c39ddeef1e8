#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::fetch {

// One file of a dataset as its mirrors have it.
struct RemoteFile {
  std::string name = {};
  std::uint64_t bytes = 0;        // 0: not known
  std::string checksum;           // as published, "sha256:…" or "md5:…"; empty: none is published
  std::string unpacked_checksum;  // of what a .gz holds: a file that was packed anew is as good
};

enum class Kind {
  kFiles,    // the files as they are
  kArchive,  // one tar.gz, of which a folder is kept
  kBuiltIn,  // part of the program
  kOwn,      // the user's images
};

struct Entry {
  std::string name;
  Kind kind = Kind::kFiles;
  std::uint64_t classes = 0, images = 0;  // 0: as the user likes
  std::vector<std::string> mirrors = {};  // folders, each with all files, in the order of trying
  std::vector<RemoteFile> files = {};
  std::string archive_folder = {};   // which folder of the archive is the dataset
  std::uint64_t unpacked_bytes = 0;  // 0: about as much as the archive

  std::uint64_t bytes() const;  // of all files; 0 where one's size is not known
};

// Every dataset, in the order in which they are listed.
std::span<const Entry> catalogue();

// Throws UserError that names the nearest spelling.
const Entry& find_entry(std::string_view name);

}  // namespace capstan::fetch
