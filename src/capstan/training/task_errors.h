#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace capstan::training {

// Call it in a catch block: throws what a task's own code has thrown as a UserError of one line without a
// stack trace. `call` is what failed, such as "loss()". UserError and Failure pass unchanged.
[[noreturn]] void rethrow_from_task(const std::string& call);

// Throws UserError if backward() cannot be called on it.
void check_loss(const at::Tensor& loss);

}  // namespace capstan::training
