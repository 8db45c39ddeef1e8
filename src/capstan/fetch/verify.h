#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/fetch/catalogue.h"

namespace capstan::fetch {

// A dataset's folder below `data_dir`. Its files are downloaded into it, an archive beside it.
std::filesystem::path folder_of(const Entry& entry, const std::filesystem::path& data_dir);
std::filesystem::path place_of(const Entry& entry, const RemoteFile& file,
                               const std::filesystem::path& data_dir);
// The file, or its unpacked version without .gz, which readers prefer.
std::optional<std::filesystem::path> find_file(const Entry& entry, const RemoteFile& file,
                                               const std::filesystem::path& data_dir);
// The partial download of a file.
std::filesystem::path part_of(const std::filesystem::path& file);

enum class Presence {
  kAbsent,
  kPartial,  // some files, or a part of one
  kComplete,
  kForeign,  // a folder that get() did not create
};
// By file names only: fast, without verification.
Presence presence(const Entry& entry, const std::filesystem::path& data_dir);

// Whether a file has the published checksum; always true if none is published. Throws Failure if the file
// cannot be read.
bool is_as_published(const std::filesystem::path& path, const RemoteFile& file);

struct Verdict {
  std::size_t files = 0;                   // that were compared
  std::vector<std::string> problems = {};  // a line each
  std::string name = {};                   // of the dataset
  std::filesystem::path folder = {};
  bool is_foreign = false;  // get() did not create the folder, and does not replace it

  bool good() const { return problems.empty(); }
  // One line: that it is good, or how to repair it.
  std::string text() const;
  Json json() const;
};
// Reads every file of a dataset of files or of an unpacked archive.
Verdict verify(const Entry& entry, const std::filesystem::path& data_dir);

}  // namespace capstan::fetch
