#include "capstan/job/folder_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace capstan::job {

FolderWatch::FolderWatch(std::vector<std::filesystem::path> folders)
    : folders_(std::move(folders)), inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  watch();
}

// Called before each wait: a folder may have been created meanwhile. Watching a folder twice has no effect.
void FolderWatch::watch() {
  if (!inotify_) return;
  for (const auto& folder : folders_)
    (void)::inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE);
}

void FolderWatch::wait(int wake, Duration most) {
  watch();
  pollfd fds[] = {{wake, POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
  (void)::poll(fds, inotify_ ? 2 : 1,
               static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(most).count()));
  char events[4096];
  while (inotify_ && ::read(inotify_.get(), events, sizeof events) > 0) {
  }
}

}  // namespace capstan::job
