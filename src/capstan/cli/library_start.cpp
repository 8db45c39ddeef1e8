#include "capstan/cli/library_start.h"

#include "capstan/cli/bench_ps.h"
#include "capstan/cli/hangup.h"
#include "capstan/cli/own_program.h"

namespace capstan {
namespace {

bool hangup_ignored_at_start = false;  // set before the first command runs, constant afterwards

}  // namespace

bool cli::hangup_was_ignored() {
  return hangup_ignored_at_start;
}

int detail::start(int argc, char** argv, const TaskFactory& make, const RunOptions& options,
                  bool hangup_was_ignored) {
  hangup_ignored_at_start = hangup_was_ignored;
  return cli::run_own_program(argc, argv, make, options);
}

int detail::start_lab(int argc, char** argv, const lab::Registry& registry, bool hangup_was_ignored) {
  hangup_ignored_at_start = hangup_was_ignored;
  return cli::run_lab_program(argc, argv, registry);
}

}  // namespace capstan
