#pragma once

#include <filesystem>
#include <string>

namespace capstan::launch {

// A new folder for the files that processes of one command exchange: logs, configurations. The destructor
// removes it. Not thread-safe.
class TemporaryFolder {
 public:
  // `purpose` is part of its name: "capstan-wire-XXXXXX". Throws UserError.
  explicit TemporaryFolder(const std::string& purpose);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace capstan::launch
