#include "capstan/training/state_dict.h"

#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

bool may_be_missing(const std::string& name) {
  return name.ends_with("num_batches_tracked");
}

}  // namespace

void load_state_dict(const NamedTensors& parameters, const NamedTensors& buffers,
                     const std::filesystem::path& file) {
  auto found = checkpoint::read_safetensors(file);
  const auto fail = [&](const std::string& what) {
    throw UserError(fmt::format("{} has the weights of another network: {}", file.string(), what));
  };
  std::map<std::string, checkpoint::Tensor*> by_name;
  for (auto& t : found.tensors) by_name[t.name] = &t;

  std::vector<std::pair<at::Tensor, checkpoint::Tensor*>> matches;
  for (const auto* tensors : {&parameters, &buffers}) {
    for (const auto& [name, tensor] : *tensors) {
      const auto entry = by_name.find(name);
      if (entry == by_name.end()) {
        if (!may_be_missing(name))
          fail(fmt::format("tensor {} ({}) is missing", name, shape_text(tensor.sizes().vec())));
        continue;
      }
      const auto& dims = entry->second->dims;
      if (at::IntArrayRef(dims) != tensor.sizes())
        fail(fmt::format("tensor {} has shape {} and should have {}", name, shape_text(dims),
                         shape_text(tensor.sizes().vec())));
      matches.emplace_back(tensor, entry->second);
      by_name.erase(entry);
    }
  }
  for (const auto& t : found.tensors) {
    if (by_name.contains(t.name)) fail(fmt::format("this network has no tensor {}", t.name));
  }
  const at::NoGradGuard no_grad;
  for (auto& [tensor, values] : matches)
    tensor.copy_(at::from_blob(values->values.data(), values->dims, at::kFloat));
}

}  // namespace capstan::training
