#pragma once

#include <memory>
#include <string>

#include "capstan/models/registry.h"

namespace capstan::models {

// One function per family of networks, each in a file of the family's name. `name` is a network of the family
// in layouts::networks(); the options have been checked.

// LeNet as in Caffe: two convolutions, each with max pooling, and 500 hidden units.
std::unique_ptr<Model> make_lenet(const std::string& name, const ModelOptions& options);
// A perceptron with one hidden layer of 128.
std::unique_ptr<Model> make_mlp(const std::string& name, const ModelOptions& options);
// All ResNets. The CIFAR variants have a 3x3 stem and no max pooling; those with 20 … 110 layers have
// shortcuts without parameters.
std::unique_ptr<Model> make_resnet(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_vgg(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_alexnet(const std::string& name, const ModelOptions& options);
// In training mode loss() adds 0.3 times the loss of each of the two auxiliary heads.
std::unique_ptr<Model> make_googlenet(const std::string& name, const ModelOptions& options);
// In training mode loss() adds 0.4 times the loss of the auxiliary head.
std::unique_ptr<Model> make_inception(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_densenet(const std::string& name, const ModelOptions& options);
std::unique_ptr<Model> make_mobilenet(const std::string& name, const ModelOptions& options);

}  // namespace capstan::models
