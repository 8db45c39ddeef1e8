#pragma once

#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

#include "capstan/torch/named_tensor.h"

namespace capstan::training {

// Buffers that a TorchScript module assigns. `self.mean = …` in its code replaces the tensor of the attribute
// `mean`, so that the list of buffers would keep the old one. Not thread-safe.
class AssignedBuffers {
 public:
  // The lists have tensors of the module, and must outlive this object. `model` is its name in messages.
  AssignedBuffers(const torch::jit::Module& module, std::string model, NamedTensors& parameters,
                  NamedTensors& buffers);

  // Call it after each call of the module: a copy of what was assigned takes the place of the tensor in the
  // list and in the module. The old tensor keeps its values, which backward() may need. Throws UserError for
  // a buffer that was assigned another shape or type, for one with two names, and for a parameter.
  void adopt();

 private:
  // An attribute of the module or of one of its submodules.
  struct Slot {
    torch::jit::ModulePtr owner;
    std::size_t index;
    std::string name;
    NamedTensor* listed;
    bool is_parameter;
  };
  void add(const torch::jit::Module& module, const std::string& name, NamedTensor& listed, bool is_parameter);
  void adopt(const Slot& slot);
  void check(const Slot& slot, const at::Tensor& assigned) const;
  [[noreturn]] void fail(const Slot& slot, const std::string& what) const;

  const std::string model_;
  std::vector<Slot> slots_;
};

}  // namespace capstan::training
