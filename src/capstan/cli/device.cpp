#include "capstan/cli/device.h"

#include <ATen/Context.h>

#include "capstan/base/user_error.h"

namespace capstan::cli {

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!at::globalContext().hasCUDA())
    throw UserError("--device cuda: this libtorch has no CUDA; use --device cpu");
  throw UserError("--device cuda: workers compute on the CPU only for now; use --device cpu");
}

}  // namespace capstan::cli
