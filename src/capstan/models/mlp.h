#pragma once

#include <memory>

#include "capstan/models/registry.h"

namespace capstan::models {

// A perceptron with one hidden layer of 128, for images of any shape.
std::unique_ptr<Model> make_mlp(const ModelOptions& options);

}  // namespace capstan::models
