#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "capstan/checkpoint/atomic_file.h"

namespace capstan::cli {

// A file that a flag names for a result. It is opened before the work, so that one that cannot be written is
// known at once. A regular file changes only when all of its text is on disk; a device or a pipe is written
// directly, and a symbolic link is followed. Failures are UserErrors that name the flag. Not thread-safe.
class OutputFile {
 public:
  // An empty path: none is wanted. Throws if `others` has the same path, or an input of the command is the
  // same file.
  OutputFile(std::string flag, const std::filesystem::path& path,
             std::span<const OutputFile* const> others = {}, std::span<const std::string> inputs = {});

  bool is_wanted() const { return !path_.empty(); }
  void write(const std::string& text);

 private:
  [[noreturn]] void fail(const std::string& why) const;
  template <class Function>
  void guarded(Function function) const;

  const std::string flag_;
  std::filesystem::path path_;                    // that links lead to
  std::unique_ptr<checkpoint::AtomicFile> file_;  // null: not a regular file
};

}  // namespace capstan::cli
