#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "capstan/base/failure.h"
#include "capstan/base/unique_fd.h"

namespace capstan::fetch {

// A file to append to. Its functions do not throw, because they run in callbacks of C libraries; the caller
// of the library calls throw_error() afterwards. Not thread-safe.
class OutputFile {
 public:
  enum class Open { kContinue, kFresh };

  // kContinue: appends to an existing file. kFresh: the file must not exist.
  OutputFile(std::filesystem::path path, Open how);

  std::uint64_t size() const { return size_; }
  bool write(std::span<const std::byte> bytes);
  bool start_over();  // truncates
  bool sync();        // to disk, and closes
  // The first error; another mirror cannot fix a full disk.
  const std::optional<std::string>& error() const { return error_; }
  void throw_error() const {
    if (error_) throw Failure(kFailed, *error_);
  }

 private:
  bool fail(const char* doing);

  std::filesystem::path path_;
  UniqueFd file_;
  std::uint64_t size_ = 0;
  std::optional<std::string> error_;
};

// Syncs a folder's entries to disk. Errors are ignored: a later crash could then lose a new name only.
void sync_folder(const std::filesystem::path& folder);

}  // namespace capstan::fetch
