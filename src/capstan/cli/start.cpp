// Linked into programs of the training library, beside the shared library.

#include "capstan/cli/hangup.h"
#include "capstan/cli/library_start.h"
#include "capstan/lab/run.h"
#include "capstan/torch/run.h"

namespace capstan {

int run(int argc, char** argv, const TaskFactory& make, const RunOptions& options) {
  return detail::start(argc, argv, make, options, cli::hangup_was_ignored());
}

int lab::run(int argc, char** argv, const Registry& registry) {
  return detail::start_lab(argc, argv, registry, cli::hangup_was_ignored());
}

}  // namespace capstan
