#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "capstan/base/failure.h"
#include "capstan/base/unique_fd.h"

namespace capstan::fetch {

// A file that grows. Nothing throws: writes happen in callbacks of C libraries, and whoever called those
// throws error() afterwards. Not thread-safe.
class OutputFile {
 public:
  enum class Open { kContinue, kFresh };

  // kContinue: at the end of what is there. kFresh: the file must not be there.
  OutputFile(std::filesystem::path path, Open how);

  std::uint64_t size() const { return size_; }
  bool write(std::span<const std::byte> bytes);
  bool start_over();  // forgets what is there
  bool sync();        // to disk, and closes
  // What went wrong first; no mirror mends a full disk.
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

// A folder's entries to disk; where that fails, the next crash may lose a name, no more.
void sync_folder(const std::filesystem::path& folder);

}  // namespace capstan::fetch
