#include "capstan/status.h"

#include <cstdio>
#include <cstdlib>

namespace capstan::detail {

void misused_result(const char* rule, const Status& status) {
  std::fprintf(stderr, "capstan: %s%s%s\n", rule, status.is_ok() ? "" : ": ", status.message().c_str());
  std::abort();
}

}  // namespace capstan::detail
