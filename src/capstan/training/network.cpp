#include "capstan/training/network.h"

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/layouts/networks.h"
#include "capstan/models/registry.h"
#include "capstan/training/state_dict.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

void check_fits(const std::string& network, const data::SampleShape& shape) {
  if (!shape.is_image()) {
    throw UserError(
        fmt::format("network {} takes images (channels x height x width); the dataset has {} per sample: add "
                    ":shape=CxHxW to --dataset",
                    network, counted(shape.elements(), "number")));
  }
  if (!shape.has_classes()) {
    throw UserError(
        fmt::format("network {} predicts classes; the dataset's target is {} per sample: with csv, :classes "
                    "makes it classes; in arrays, classes are integers",
                    network, counted(shape.target_elements(), "number")));
  }
}

}  // namespace

std::unique_ptr<models::Model> make_network(const NetworkOptions& options, const data::SampleShape& shape,
                                            std::uint64_t batch) {
  check_fits(options.name, shape);
  if (options.classes > 0 && options.classes < shape.classes) {
    throw UserError(fmt::format("--num-classes {}: the dataset has {} classes; give at least as many",
                                options.classes, shape.classes));
  }
  const auto classes = options.classes > 0 ? options.classes : shape.classes;
  auto model = models::make(options.name,
                            {shape.channels(), shape.height(), shape.width(), classes, options.init_seed});
  layouts::check_batch(layouts::find_network(options.name), {shape.channels(), shape.height(), shape.width()},
                       batch);
  if (!options.weights.empty()) load_state_dict(model->parameters(), model->buffers(), options.weights);
  return model;
}

}  // namespace capstan::training
