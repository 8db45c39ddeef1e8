#include "capstan/training/task_errors.h"

#include <exception>
#include <sstream>
#include <string_view>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

[[noreturn]] void fail(const std::string& call, const std::string& reason) {
  throw UserError(fmt::format("{} of the task failed: {}", call, reason));
}

}  // namespace

std::string text_of(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch ? of_torch->what_without_backtrace() : error.what();
}

// TorchScript's interpreter puts the trace of the module's code first, and the reason last: "RuntimeError:
// …".
std::string reason_of(const std::exception& error) {
  constexpr std::string_view kReason = "RuntimeError: ";
  const auto text = text_of(error);
  if (const auto at = text.rfind(kReason); at != std::string::npos) {
    const auto begin = at + kReason.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t") != std::string::npos) return line;
  return "unknown error";
}

void rethrow_from_task(const std::string& call) {
  try {
    throw;
  } catch (const UserError&) {
    throw;
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    fail(call, reason_of(error));
  } catch (...) {
    fail(call, "it threw an object that is no std::exception");
  }
}

// A server stores 32-bit floats, and workers compute on the CPU.
void check_parameter(const NamedTensor& parameter) {
  const auto& tensor = parameter.tensor;
  if (tensor.scalar_type() != at::kFloat)
    throw UserError(
        fmt::format("parameter {} has the type {}: Capstan trains parameters of 32-bit floats; call "
                    "to(torch::kFloat) on the module",
                    parameter.name, c10::toString(tensor.scalar_type())));
  if (!tensor.device().is_cpu())
    throw UserError(
        fmt::format("parameter {} is on the device {}: Capstan computes on the CPU; call "
                    "to(torch::kCPU) on the module",
                    parameter.name, tensor.device().str()));
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
