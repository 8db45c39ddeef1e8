#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/fetch/catalogue.h"

namespace capstan::fetch {

// Where a dataset lies: the folder of its name below `data_dir`. Its files are downloaded there, an archive
// beside it.
std::filesystem::path folder_of(const Entry& entry, const std::filesystem::path& data_dir);
std::filesystem::path place_of(const Entry& entry, const RemoteFile& file,
                               const std::filesystem::path& data_dir);
// The file, or what a .gz holds under its name without that, which readers take first.
std::optional<std::filesystem::path> find_file(const Entry& entry, const RemoteFile& file,
                                               const std::filesystem::path& data_dir);
// What has come of a file that is not whole yet.
std::filesystem::path part_of(const std::filesystem::path& file);

enum class Presence {
  kAbsent,
  kPartial,  // some files, or a part of one
  kThere,
  kForeign,  // something is there that get() did not put there
};
// By names alone: quick, and no proof.
Presence presence(const Entry& entry, const std::filesystem::path& data_dir);

// Whether a file is the one that was published. Without a published checksum any file is. Throws Failure
// where it cannot be read.
bool is_as_published(const std::filesystem::path& path, const RemoteFile& file);

struct Verdict {
  std::size_t files = 0;              // that were compared
  std::vector<std::string> problems;  // a line each; none: all is well
};
// Reads every file of a dataset of files or of an unpacked archive.
Verdict verify(const Entry& entry, const std::filesystem::path& data_dir);

}  // namespace capstan::fetch
