#pragma once

#include "capstan/layouts/networks.h"
#include "capstan/layouts/tensor_table.h"

namespace capstan::layouts {

// Each adds the tensors of one family's network; defined in FAMILY_layout.cpp.
void add_resnet(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes);
void add_vgg(TensorTable& table, const NetworkInfo& network, std::int64_t channels, std::int64_t classes);
void add_googlenet(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes);
void add_inception(TensorTable& table, const NetworkInfo& network, std::int64_t channels,
                   std::int64_t classes);
void add_densenet(TensorTable& table, std::int64_t channels, std::int64_t classes);
void add_mobilenet(TensorTable& table, std::int64_t channels, std::int64_t classes);

}  // namespace capstan::layouts
