#include "capstan/cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "capstan/base/check.h"

namespace capstan::cli {

Interrupts::Interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  // An ignored SIGINT stays ignored: a launcher decides for its children.
  struct sigaction now {};
  ::sigaction(SIGINT, nullptr, &now);
  if (now.sa_handler != SIG_IGN) ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  CAPSTAN_CHECK(static_cast<bool>(fd_), "the kernel gives a signalfd");
}

int Interrupts::count() {
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) ++count_;
  return count_;
}

}  // namespace capstan::cli
