#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

namespace capstan::job {

// Waits for changes in folders, with inotify; network file systems send no notifications, so each wait has a
// time limit. Not thread-safe.
class FolderWatch {
 public:
  using Folders = std::function<std::vector<std::filesystem::path>()>;

  // `folders` is called before each wait: folders may be created later.
  explicit FolderWatch(Folders folders);

  // Returns after a change, when `wake` is readable, or after `most`; at once if there is a new folder, in
  // which a change may have been missed.
  void wait(int wake, Duration most);

 private:
  bool watch();

  const Folders folders_;
  UniqueFd inotify_;
  std::set<int> watched_;
};

}  // namespace capstan::job
