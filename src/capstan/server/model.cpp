#include "capstan/server/model.h"

#include "capstan/base/parameter_groups.h"

namespace capstan::server {

Result<Model> model_of(const std::vector<wire::Tensor>& layout, const std::vector<wire::Phase>& phases) {
  auto tensors = wire::from_wire(layout);
  if (!tensors) return tensors.status();
  auto declared = wire::phases_from_wire(phases, *tensors);
  if (!declared) return declared.status();
  return Model{std::move(*tensors), std::move(*declared)};
}

void describe_model(const Model& model, wire::Joined& joined) {
  joined.layout = wire::to_wire(model.layout);
  joined.phases = wire::to_wire(model.phases);
}

std::string difference(const Model& here, const Model& there) {
  const auto layouts = here.layout.difference(there.layout);
  return layouts.empty() ? capstan::difference(here.phases, there.phases) : layouts;
}

}  // namespace capstan::server
