#pragma once

#include <string>

#include "capstan/optimizer/spec.h"

namespace capstan::lab {

// The optimizers of a strategy: "sgd", "sgd:momentum=0.9", "default=sgd,embedding.*=adagrad". What the text
// does not set has PyTorch's default; sgd has no momentum. Throws UserError.
optimizer::Spec strategy_optimizer(const std::string& text, double learning_rate);

}  // namespace capstan::lab
