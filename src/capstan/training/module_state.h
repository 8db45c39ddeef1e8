#pragma once

#include <string>
#include <vector>

#include <torch/csrc/jit/api/module.h>

namespace capstan::training {

// What a TorchScript module may change when it is called: all attributes but trained parameters. Saved by the
// constructor. Not thread-safe.
class ModuleState {
 public:
  explicit ModuleState(const torch::jit::Module& module);

  // Buffers get their values back and stay the same tensors.
  void restore() const;

 private:
  struct Attribute {
    torch::jit::ModulePtr owner;
    std::string name;
    c10::IValue value;
    at::Tensor values;  // of a buffer, a copy
  };
  void save(const torch::jit::ModulePtr& owner);

  std::vector<Attribute> attributes_;
};

}  // namespace capstan::training
