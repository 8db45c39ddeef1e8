#include "capstan/training/aliases.h"

#include <algorithm>

namespace capstan::training {

bool add_alias(NamedTensors& list, const std::string& name, const at::Tensor& tensor) {
  const auto known =
      std::ranges::find_if(list, [&](const NamedTensor& n) { return n.tensor.is_same(tensor); });
  if (known == list.end()) return false;
  known->aliases.push_back(name);
  return true;
}

checkpoint::Aliases aliases_of(const NamedTensors& parameters, const NamedTensors& buffers) {
  checkpoint::Aliases aliases;
  for (const auto* list : {&parameters, &buffers})
    for (const auto& tensor : *list)
      for (const auto& alias : tensor.aliases) aliases[alias] = tensor.name;
  return aliases;
}

}  // namespace capstan::training
