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
  std::optional<double> dropout = {};  // rate of every dropout layer; absent: the network's own
};

// A network of layouts::networks(), by name, initialised as PyTorch and torchvision do, the same for the same
// options; draws from libtorch's global generator, which it seeds. Throws UserError for an unknown name or
// images that do not fit.
std::unique_ptr<Model> make(const std::string& name, const ModelOptions& options);

}  // namespace capstan::models
