#pragma once

#include "capstan/layouts/networks.h"
#include "capstan/layouts/tensor_table.h"

namespace capstan::layouts {

// One function per family, in files of the families' names.
void add_resnet(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes);
void add_vgg(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes);
void add_googlenet(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes);
void add_inception(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes);
void add_densenet(TensorTable& table, std::int64_t channels, std::int64_t classes);
void add_mobilenet(TensorTable& table, std::int64_t channels, std::int64_t classes);

}  // namespace capstan::layouts
