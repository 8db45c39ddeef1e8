#include "capstan/cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "capstan/base/check.h"
#include "capstan/cli/hangup.h"
#include "capstan/launch/child.h"

namespace capstan::cli {

void keep_hangup_ignored() {
  if (hangup_was_ignored()) ::signal(SIGHUP, SIG_IGN);
}

Interrupts::Interrupts() {
  keep_hangup_ignored();
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGHUP, SIGTERM, launch::kStopSignal}) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (number == SIGHUP ? !hangup_was_ignored() : now.sa_handler != SIG_IGN) ::sigaddset(&set, number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  CAPSTAN_CHECK(static_cast<bool>(fd_), "signalfd succeeds");
}

int Interrupts::requests() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) ++count_;
  return count_;
}

}  // namespace capstan::cli
