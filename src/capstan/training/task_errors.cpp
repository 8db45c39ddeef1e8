#include "capstan/training/task_errors.h"

#include <exception>
#include <sstream>
#include <string_view>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

#include "capstan/base/failure.h"
#include "capstan/base/text.h"
#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

constexpr std::size_t kLongest = 300;  // bytes of a message that a module has raised

std::string on_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return shortened(out, kLongest);
}

std::size_t after_line_start(const std::string& text, const std::string& type) {
  const auto at = text.find("\n" + type + ": ");
  return at == std::string::npos ? at : at + type.size() + 3;
}

// TorchScript's interpreter puts the trace of the module's code first, and the reason last: "RuntimeError:
// …", or the Python class that the module has raised, such as "builtins.ValueError: …". The lines of a trace
// are indented. A message may itself be the text of an inner interpreter. Empty for texts of others.
std::string raised_message(const std::exception& error, std::string text) {
  const std::string kError = "RuntimeError";
  constexpr std::string_view kTrace = "The following operation failed in the TorchScript interpreter.";
  const auto* const raised = dynamic_cast<const torch::jit::JITException*>(&error);
  const auto type = raised ? raised->getPythonClassName().value_or(kError) : kError;
  if (!text.starts_with(kTrace)) return {};
  while (text.starts_with(kTrace)) {
    auto begin = after_line_start(text, type);
    if (begin == std::string::npos) begin = after_line_start(text, kError);
    if (begin == std::string::npos) return {};
    text.erase(0, begin);
  }
  return on_one_line(text);
}

[[noreturn]] void fail(const std::string& call, const std::string& reason) {
  throw UserError(fmt::format("{} of the task failed: {}", call, reason));
}

}  // namespace

std::string text_of(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch ? of_torch->what_without_backtrace() : error.what();
}

std::string reason_of(const std::exception& error) {
  const auto text = text_of(error);
  if (const auto message = raised_message(error, text); !message.empty()) return message;
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
  if (parameter.sparse && tensor.dim() != 2)
    throw UserError(
        fmt::format("parameter {} is declared sparse and has the shape {}: sparse gradients have rows, so it "
                    "needs two dimensions",
                    parameter.name, shape_text(tensor.sizes().vec())));
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
