#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capstan/models/model.h"

namespace capstan::models {

struct ModelOptions {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
  std::uint64_t init_seed = 1;
};

// The names make() knows.
std::span<const std::string_view> model_names();

// The network with PyTorch's default initialisation, the same for the same options; draws from libtorch's
// global generator, which it seeds. Throws UserError for an unknown name or an input that does not fit.
std::unique_ptr<Model> make(const std::string& name, const ModelOptions& options);

}  // namespace capstan::models
