#pragma once

#include <memory>

#include "capstan/lab/configuration.h"
#include "capstan/lab/model.h"

namespace capstan::lab {

// One linear layer. Its values: in_features, out_features. Throws UserError for wrong values.
std::shared_ptr<Model> make_linear_model(const Configuration& values);

}  // namespace capstan::lab
