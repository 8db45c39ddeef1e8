#include "capstan/job/folder_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace capstan::job {

FolderWatch::FolderWatch(Folders folders)
    : folders_(std::move(folders)), inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  watch();
}

// True for a new folder. Watching a folder twice has no effect.
bool FolderWatch::watch() {
  bool is_new = false;
  for (const auto& folder : folders_()) {
    const int id =
        inotify_ ? ::inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO) : -1;
    if (id >= 0 && watched_.insert(id).second) is_new = true;
  }
  return is_new;
}

void FolderWatch::wait(int wake, Duration most) {
  if (watch()) return;
  pollfd fds[] = {{wake, POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
  (void)::poll(fds, inotify_ ? 2 : 1,
               static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(most).count()));
  char events[4096];
  while (inotify_ && ::read(inotify_.get(), events, sizeof events) > 0) {
  }
}

}  // namespace capstan::job
