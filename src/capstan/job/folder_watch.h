#pragma once

#include <filesystem>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

namespace capstan::job {

// Waits for something to change in folders: at once where the kernel tells (inotify), else when the time is
// over, since network file systems tell nothing. Folders may appear later. Not thread-safe.
class FolderWatch {
 public:
  explicit FolderWatch(std::vector<std::filesystem::path> folders);

  // Returns when something changed, when `wake` is readable, or after `most`.
  void wait(int wake, Duration most);

 private:
  void watch();

  const std::vector<std::filesystem::path> folders_;
  UniqueFd inotify_;
};

}  // namespace capstan::job
