#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "capstan/base/flat_layout.h"

namespace capstan::layouts {

enum class ResNetBlock { kBasic, kBottleneck };

// A ResNet for 3-channel images with this many blocks in each of its four stages.
std::vector<TensorShape> resnet(std::array<int, 4> blocks, ResNetBlock kind, std::int64_t classes);

// A VGG without batch norm for 3x224x224 images, with this many convolutions in each of its five stages.
std::vector<TensorShape> vgg(std::array<int, 5> convolutions, std::int64_t classes);

}  // namespace capstan::layouts
