#pragma once

#include <memory>
#include <string>

#include "capstan/models/registry.h"

namespace capstan::models {

// One function per family of networks, each in a file of the family's name. `name` is one of the family's in
// layouts::networks(); options are known to fit it.

// LeNet as in Caffe: two convolutions, two pools, 500 hidden units.
std::unique_ptr<Model> make_lenet(const std::string& name, const ModelOptions& options);
// A perceptron with one hidden layer of 128.
std::unique_ptr<Model> make_mlp(const std::string& name, const ModelOptions& options);
// All ResNets. Those of the CIFAR forms begin with a 3x3 convolution and no pool; those with 20 … 110 layers
// have shortcuts without parameters.
std::unique_ptr<Model> make_resnet(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_vgg(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_alexnet(const std::string& name, const ModelOptions& options);
// In training mode loss() counts each of the two auxiliary heads by 0.3.
std::unique_ptr<Model> make_googlenet(const std::string& name, const ModelOptions& options);
// In training mode loss() counts the auxiliary head by 0.4.
std::unique_ptr<Model> make_inception(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_densenet(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_mobilenet(const std::string& name, const ModelOptions& options);

}  // namespace capstan::models
