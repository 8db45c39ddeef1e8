// Properties of the installed libtorch, as one JSON line for `capstan doctor`.

#include <fmt/format.h>

#include "capstan/cli/commands.h"
#include "capstan/training/torch_facts.h"

namespace capstan::cli {

int run_describe(const Arguments&) {
  fmt::print("{}\n", json_line(training::measure_torch().json()));
  return kSuccess;
}

}  // namespace capstan::cli
