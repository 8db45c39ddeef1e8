#include "capstan/training/phases.h"

#include "capstan/base/parameter_groups.h"

namespace capstan::training {

Phases::Phases(Task& task, const FlatLayout& layout) : task_(task) {
  const ParameterGroups groups(layout, {.phases = task.phases()});
  count_ = groups.phases();
  for (const auto group : groups.of_tensors()) phase_of_.push_back(groups[group].phase);
}

Phases::~Phases() {
  if (count_ > 1)
    for (const auto& p : task_.parameters()) p.tensor.set_requires_grad(true);
}

void Phases::enter(std::uint32_t phase) const {
  if (count_ == 1) return;
  for (std::size_t i = 0; i < phase_of_.size(); ++i)
    task_.parameters()[i].tensor.set_requires_grad(phase_of_[i] == phase);
}

}  // namespace capstan::training
