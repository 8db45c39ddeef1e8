#pragma once

namespace capstan::cli {

// True if the process ignored SIGHUP when it started (nohup, a launcher's children). Must be noted before
// libraries are initialized, because UCX installs a handler; only a program's own objects can do so. There
// are two implementations: hangup.cpp for programs, and library_start.cpp for the shared library, which is
// told by the object that a user's program is linked with (start.cpp).
bool hangup_was_ignored();

}  // namespace capstan::cli
