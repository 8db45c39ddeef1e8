#pragma once

#include <exception>
#include <string>

#include "capstan/torch/named_tensor.h"

namespace capstan::training {

// The reason of an exception in one line: the message that a TorchScript module has raised, without the trace
// of its code; otherwise the first line of its text, without libtorch's stack traces.
std::string reason_of(const std::exception& error);
// All of its text, without C++ stack traces.
std::string text_of(const std::exception& error);

// Call it in a catch block: throws what a task's own code has thrown as a UserError of one line without a
// stack trace. `call` is what failed, such as "loss()". UserError and Failure pass unchanged.
[[noreturn]] void rethrow_from_task(const std::string& call);

// Throws UserError if it is not of 32-bit floats on the CPU.
void check_parameter(const NamedTensor& parameter);
// Throws UserError if backward() cannot be called on it.
void check_loss(const at::Tensor& loss);

}  // namespace capstan::training
