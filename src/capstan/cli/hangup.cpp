#include "capstan/cli/hangup.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace capstan::cli {
namespace {

bool was_ignored = false;

// By system call and without instrumentation: this runs before any library is initialized, sanitizers
// included.
__attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize_undefined)) void note_hangup() {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } now{};
  ::syscall(SYS_rt_sigaction, SIGHUP, nullptr, &now, sizeof now.mask);
  was_ignored = now.handler == SIG_IGN;
}
__attribute__((section(".preinit_array"), used)) void (*const kNoteHangup)() = note_hangup;

}  // namespace

bool hangup_was_ignored() {
  return was_ignored;
}

}  // namespace capstan::cli
