#pragma once

#include <filesystem>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

namespace capstan::job {

// Waits for changes in folders, with inotify; network file systems send no notifications, so each wait has a
// time limit. Folders may be created later. Not thread-safe.
class FolderWatch {
 public:
  explicit FolderWatch(std::vector<std::filesystem::path> folders);

  // Returns after a change, when `wake` is readable, or after `most`.
  void wait(int wake, Duration most);

 private:
  void watch();

  const std::vector<std::filesystem::path> folders_;
  UniqueFd inotify_;
};

}  // namespace capstan::job
