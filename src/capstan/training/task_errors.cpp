#include "capstan/training/task_errors.h"

#include <exception>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/base/flat_layout.h"
#include "capstan/base/user_error.h"

namespace capstan::training {
namespace {

[[noreturn]] void fail(const std::string& call, const std::string& what) {
  throw UserError(fmt::format("{} of the task failed: {}", call, what.substr(0, what.find('\n'))));
}

}  // namespace

void rethrow_from_task(const std::string& call) {
  try {
    throw;
  } catch (const UserError&) {
    throw;
  } catch (const Failure&) {
    throw;
  } catch (const c10::Error& error) {
    fail(call, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(call, error.what());
  } catch (...) {
    fail(call, "it threw an object that is no std::exception");
  }
}

void check_loss(const at::Tensor& loss) {
  if (!loss.defined()) throw UserError("loss() of the task returned no tensor: it must return a scalar");
  if (loss.numel() != 1)
    throw UserError(
        fmt::format("loss() of the task returned a tensor of shape {}: it must return a scalar, "
                    "such as the mean over the batch",
                    shape_text(loss.sizes().vec())));
  if (!loss.requires_grad())
    throw UserError(
        "loss() of the task returned a tensor without gradients: compute it from the parameters of the "
        "phase, "
        "without detach() or NoGradGuard");
}

}  // namespace capstan::training
