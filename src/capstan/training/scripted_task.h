#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "capstan/training/dataset_task.h"

namespace capstan::training {

struct ScriptedOptions {
  std::filesystem::path file;          // a TorchScript module, scripted or traced
  std::string loss = "auto";           // a value of --loss
  std::filesystem::path weights = {};  // a PyTorch state dict; empty: the initial weights are the file's
  std::uint64_t batch = 2;             // samples per step
};

// A TorchScript module on a dataset. Its parameters that require gradients are trained; the others and its
// buffers are buffers. Throws UserError for a file that is not a module or needs unknown operators, for
// parameters that are not 32-bit floats, for data that the module does not take, and for a loss that does not
// fit.
std::unique_ptr<Task> make_scripted_task(const ScriptedOptions& options, data::Dataset dataset);

}  // namespace capstan::training
