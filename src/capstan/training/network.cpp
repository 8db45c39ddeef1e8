#include "capstan/training/network.h"

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/layouts/networks.h"
#include "capstan/models/registry.h"
#include "capstan/training/state_dict.h"

namespace capstan::training {

std::unique_ptr<models::Model> make_network(const NetworkOptions& options, const data::ImageShape& shape,
                                            std::uint64_t batch) {
  if (options.classes > 0 && options.classes < shape.classes) {
    throw UserError(fmt::format("--num-classes {}: the dataset has {} classes; give at least as many",
                                options.classes, shape.classes));
  }
  const auto classes = options.classes > 0 ? options.classes : shape.classes;
  auto model =
      models::make(options.name, {shape.channels, shape.height, shape.width, classes, options.init_seed});
  layouts::check_batch(layouts::find_network(options.name), {shape.channels, shape.height, shape.width},
                       batch);
  if (!options.weights.empty()) load_state_dict(model->parameters(), model->buffers(), options.weights);
  return model;
}

}  // namespace capstan::training
