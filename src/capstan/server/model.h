#pragma once

#include <string>
#include <vector>

#include "capstan/layout.h"
#include "capstan/status.h"
#include "capstan/step_phase.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// What the workers of a job train, as each of them declares it; equal for all. A value.
struct Model {
  FlatLayout layout;
  std::vector<StepPhase> phases = {};  // of a step; none: one phase of all tensors
};

// The model in a message, checked by wire::from_wire() and wire::phases_from_wire().
Result<Model> model_of(const std::vector<wire::Tensor>& layout, const std::vector<wire::Phase>& phases);
// Adds a model to a message.
void describe_model(const Model& model, wire::Joined& joined);

// The first difference, in one line; empty if the models are equal.
std::string difference(const Model& here, const Model& there);

}  // namespace capstan::server
