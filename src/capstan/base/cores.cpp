#include "capstan/base/cores.h"

#include <algorithm>

#include <sched.h>
#include <unistd.h>

namespace capstan {

unsigned usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace capstan
