#include "capstan/training/state_dict.h"

#include <algorithm>
#include <map>
#include <span>

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

bool has_same_bits(const checkpoint::Tensor& a, const checkpoint::Tensor& b) {
  return std::ranges::equal(std::as_bytes(std::span(a.values)), std::as_bytes(std::span(b.values)));
}

// The tensors of a file by name. Not thread-safe.
class StateDict {
 public:
  explicit StateDict(const std::filesystem::path& file)
      : file_(file.string()), content_(checkpoint::read_safetensors(file)) {
    for (auto& t : content_.tensors) unused_[t.name] = &t;
  }

  // The values of a tensor, which any of its names may have; null if the file may lack it.
  checkpoint::Tensor* take(const NamedTensor& wanted) {
    auto* found = take(wanted.name, wanted.tensor);
    for (const auto& alias : wanted.aliases) {
      auto* const other = take(alias, wanted.tensor);
      if (found && other && !has_same_bits(*found, *other))
        fail(fmt::format("tensors {} and {} have different values and are one tensor in the network",
                         found->name, alias));
      if (!found) found = other;
    }
    if (!found && !may_be_missing(wanted.name))
      fail(fmt::format("tensor {} ({}) is missing", wanted.name, shape_text(wanted.tensor.sizes().vec())));
    return found;
  }

  void check_all_are_taken() const {
    for (const auto& t : content_.tensors)
      if (unused_.contains(t.name)) fail(fmt::format("this network has no tensor {}", t.name));
  }

 private:
  checkpoint::Tensor* take(const std::string& name, const at::Tensor& like) {
    const auto entry = unused_.extract(name);
    if (entry.empty()) return nullptr;
    const auto& dims = entry.mapped()->dims;
    if (at::IntArrayRef(dims) != like.sizes())
      fail(fmt::format("tensor {} has shape {} and should have {}", name, shape_text(dims),
                       shape_text(like.sizes().vec())));
    return entry.mapped();
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{} has the weights of another network: {}", file_, what));
  }

  const std::string file_;
  checkpoint::Safetensors content_;
  std::map<std::string, checkpoint::Tensor*> unused_;
};

}  // namespace

void load_state_dict(const NamedTensors& parameters, const NamedTensors& buffers,
                     const std::filesystem::path& file) {
  StateDict dict(file);
  std::vector<std::pair<at::Tensor, checkpoint::Tensor*>> matches;
  for (const auto* tensors : {&parameters, &buffers})
    for (const auto& t : *tensors)
      if (auto* const values = dict.take(t)) matches.emplace_back(t.tensor, values);
  dict.check_all_are_taken();
  const at::NoGradGuard no_grad;
  for (auto& [tensor, values] : matches)
    tensor.copy_(at::from_blob(values->values.data(), values->dims, at::kFloat));
}

}  // namespace capstan::training
