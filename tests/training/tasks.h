#pragma once

#include <memory>
#include <string>

#include "capstan/data/dataset.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"

namespace capstan::training {

// A network on a dataset. Seeds libtorch's generator.
inline std::unique_ptr<Classification> classify(const std::string& dataset,
                                                const std::string& network = "lenet",
                                                std::uint64_t init_seed = 1) {
  auto images = data::load({dataset, "", 1});
  auto model = make_network({network, 0, init_seed}, images.test->shape(), 2);
  return std::make_unique<Classification>(std::move(images), std::move(model));
}

}  // namespace capstan::training
