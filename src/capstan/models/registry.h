#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "capstan/models/model.h"

namespace capstan::models {

struct ModelOptions {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
  std::uint64_t init_seed = 1;
  std::optional<double> dropout = {};  // rate of every dropout layer; default: the network's
};

// Makes a network of layouts::networks() by name, initialised as in PyTorch and torchvision. Seeds libtorch's
// global generator, so the same options give the same weights. Throws UserError for an unknown name or images
// that the network does not accept.
std::unique_ptr<Model> make(const std::string& name, const ModelOptions& options);

}  // namespace capstan::models
