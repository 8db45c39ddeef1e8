#pragma once

#include <memory>

#include "capstan/models/registry.h"

namespace capstan::models {

// LeNet as in Caffe: two convolutions, two pools, 500 hidden units; 431,080 parameters for 10 classes.
// Throws UserError unless images are 1x28x28.
std::unique_ptr<Model> make_lenet(const ModelOptions& options);

}  // namespace capstan::models
