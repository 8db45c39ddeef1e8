#include "capstan/training/scripted_task.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>

#include "capstan/base/text.h"
#include "capstan/data/zip_file.h"
#include "capstan/layout.h"
#include "capstan/training/aliases.h"
#include "capstan/training/assigned_buffers.h"
#include "capstan/training/module_state.h"
#include "capstan/training/objective.h"
#include "capstan/training/state_dict.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

constexpr const char* kOwnLoss = "module";  // --loss: the module's method `loss`

// libtorch does not compare the checksums of the archive: it would train from damaged weights.
void check_archive(const std::filesystem::path& file) {
  try {
    const data::ZipFile archive(file);
    for (const auto& member : archive.members()) archive.check(member);
  } catch (const UserError& error) {
    throw UserError(
        fmt::format("--network: {}; a TorchScript module is written by torch.jit.script(module).save(FILE)",
                    error.what()));
  }
}

torch::jit::Module load(const std::filesystem::path& file) {
  const auto name = file.string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw UserError(fmt::format("--network {}: no such file", name));
  check_archive(file);
  try {
    return torch::jit::load(name);
  } catch (const std::exception& failure) {
    const auto reason = reason_of(failure);
    const auto all = text_of(failure);
    if (const auto at = all.find("Unknown builtin op: "); at != std::string::npos) {
      const auto begin = at + std::string_view("Unknown builtin op: ").size();
      throw UserError(fmt::format("--network {}: needs the operator {}, which this libtorch does not have",
                                  name, all.substr(begin, all.find_first_of(".\n", begin) - begin)));
    }
    if (all.find("constants.pkl") != std::string::npos)
      throw UserError(
          fmt::format("--network {}: is not a TorchScript module, which torch.jit.script(module).save(FILE) "
                      "writes; a state dict is passed as --weights FILE.safetensors",
                      name));
    throw UserError(fmt::format("--network {}: is not a TorchScript module: {}", name, reason));
  }
}

class ScriptedTask final : public DatasetTask {
 public:
  ScriptedTask(const ScriptedOptions& options, data::Dataset dataset)
      : DatasetTask(std::move(dataset)),
        name_(options.file.filename().string()),
        module_(load(options.file)) {
    if (options.loss == kOwnLoss) {
      if (!module_.find_method("loss"))
        throw UserError(
            fmt::format("--loss module: {} has no method loss; export loss(self, input, target)", name_));
    } else {
      objective_.emplace(options.loss, shape());
      if (split(Split::kTrain).samples > 0) objective_->check_targets(source(Split::kTrain), "training");
      objective_->check_targets(source(Split::kTest), "test");
    }
    list_tensors();
    assigned_.emplace(module_, name_, parameters_, buffers_);
    if (!options.weights.empty()) load_state_dict(parameters_, buffers_, options.weights);
    module_.train(true);
    try_once(options.batch);
  }

  const NamedTensors& parameters() const override { return parameters_; }
  const NamedTensors& buffers() const override { return buffers_; }
  void train(bool on) override { module_.train(on); }

  // Batch norm cannot train on one sample. The last batch of an epoch may have only one: as in the networks
  // of the zoo, the running statistics take the place of the batch's.
  at::Tensor loss(std::size_t, const Batch& batch) override {
    if (batch.samples > 1 || !module_.is_training()) return loss_of(batch);
    const ModuleState before(module_);
    try {
      return loss_of(batch);
    } catch (const std::exception&) {
      before.restore();
      module_.train(false);
      const auto value = loss_of(batch);
      module_.train(true);
      return value;
    }
  }
  std::vector<Metric> metrics() const override {
    return objective_ ? objective_->metrics() : std::vector<Metric>{{"loss"}};
  }
  std::vector<MetricSum> evaluate(const Batch& batch) override {
    if (objective_) return objective_->evaluate(output(batch), batch.target);
    const auto samples = static_cast<double>(batch.samples);
    return {{own_loss(batch).item<double>() * samples, samples}};
  }

 private:
  at::Tensor loss_of(const Batch& batch) {
    return objective_ ? objective_->loss(output(batch), batch.target) : own_loss(batch);
  }

  // Another name of a tensor that is listed: two layers share it.
  bool is_alias(const std::string& name, const at::Tensor& tensor) {
    return add_alias(parameters_, name, tensor) || add_alias(buffers_, name, tensor);
  }

  void list_tensors() {
    for (const auto& parameter : module_.named_parameters(/*recurse=*/true)) {
      const auto& tensor = parameter.value;
      if (is_alias(parameter.name, tensor)) continue;
      check_memory("parameter " + parameter.name, tensor);
      if (tensor.scalar_type() != at::kFloat)
        throw UserError(fmt::format("--network {}: parameter {} is {}; parameters must be 32-bit floats",
                                    name_, parameter.name, c10::toString(tensor.scalar_type())));
      (tensor.requires_grad() ? parameters_ : buffers_).push_back({parameter.name, tensor});
    }
    for (const auto& buffer : module_.named_buffers(/*recurse=*/true)) {
      if (is_alias(buffer.name, buffer.value)) continue;
      check_memory("buffer " + buffer.name, buffer.value);
      check_integers(buffer.name, buffer.value);
      buffers_.push_back({buffer.name, buffer.value});
    }
    for (const auto& module : module_.modules()) mark_sparse(module);
    if (parameters_.empty())
      throw UserError(fmt::format("--network {}: has no parameters to train; was it frozen?", name_));
  }

  // Values cannot be copied to a tensor whose elements share memory. The layout of a model has no tensors
  // without elements.
  void check_memory(const std::string& tensor, const at::Tensor& values) const {
    if (values.numel() == 0)
      throw UserError(fmt::format("--network {}: {} is empty ({}); a tensor must have an element", name_,
                                  tensor, shape_text(values.sizes().vec())));
    if (at::has_internal_overlap(values) == at::MemOverlap::Yes)
      throw UserError(
          fmt::format("--network {}: {} has elements that share memory, as after expand(); use clone() "
                      "before it is saved",
                      name_, tensor));
  }

  // torch.nn.Embedding and EmbeddingBag keep `sparse` as a constant of their type.
  void mark_sparse(const torch::jit::Module& module) {
    const auto constant = module.type()->findConstant("sparse");
    if (!constant || !constant->isBool() || !constant->toBool() || !module.hasattr("weight")) return;
    const auto weight = module.attr("weight").toTensor();
    for (auto& parameter : parameters_)
      if (parameter.tensor.is_same(weight)) parameter.sparse = true;
  }

  // Integers are sent and saved as 32-bit floats.
  void check_integers(const std::string& name, const at::Tensor& values) const {
    if (!values.is_floating_point() && !at::equal(values.to(at::kFloat).to(values.scalar_type()), values))
      throw UserError(
          fmt::format("--network {}: buffer {} has integers that 32-bit floats cannot hold", name_, name));
  }

  // With one sample per step, every step would fall back to the running statistics.
  void try_training_on_one(const Batch& batch) {
    module_.train(true);
    try {
      (void)loss_of({batch.input.narrow(0, 0, 1), batch.target.narrow(0, 0, 1), {}, 1});
    } catch (const std::exception& failure) {
      throw UserError(
          fmt::format("--batch-size 1: {} cannot train on one sample: {}", name_, reason_of(failure)));
    }
  }

  // Errors in forward that do not depend on values show before the job starts. A module may count its calls:
  // its state is restored.
  void try_once(std::uint64_t batch_size) {
    const ModuleState before(module_);
    const at::NoGradGuard no_grad;
    const auto samples = std::min<std::uint64_t>(2, split(Split::kTest).samples);
    constexpr std::uint32_t kFirst[] = {0, 1};
    const auto batch = this->batch(Split::kTest, {0, std::span(kFirst).first(samples)});
    module_.train(false);
    try {
      if (objective_)
        (void)output(batch);
      else
        check_own_loss(own_loss(batch));
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& failure) {
      throw UserError(fmt::format("--network {}: does not take the data, an input of {}: {}", name_,
                                  shape_text(batch.input.sizes().vec()), reason_of(failure)));
    }
    if (batch_size == 1) try_training_on_one(batch);
    before.restore();
    assigned_->adopt();
  }

  void check_own_loss(const at::Tensor& value) const {
    if (value.numel() != 1)
      throw UserError(fmt::format("--loss module: {} returns a loss of {}; it must be one number", name_,
                                  shape_text(value.sizes().vec())));
  }

  // The value that a method of the module has returned.
  at::Tensor returned(const c10::IValue& value, const char* method) {
    assigned_->adopt();
    if (value.isTensor()) return value.toTensor();
    throw UserError(fmt::format("{}: {} returns {}, not a tensor", name_, method, value.tagKind()));
  }
  // It may have another shape for batches of other sizes.
  at::Tensor output(const Batch& batch) {
    auto value = returned(module_.forward({batch.input}), "forward");
    objective_->check_output(value, batch.input.size(0), name_);
    return value;
  }
  at::Tensor own_loss(const Batch& batch) {
    return returned(module_.get_method("loss")({batch.input, batch.target}), "loss");
  }

  const std::string name_;
  torch::jit::Module module_;
  std::optional<Objective> objective_;  // none: the module's own loss
  NamedTensors parameters_, buffers_;
  std::optional<AssignedBuffers> assigned_;
};

}  // namespace

std::unique_ptr<Task> make_scripted_task(const ScriptedOptions& options, data::Dataset dataset) {
  return std::make_unique<ScriptedTask>(options, std::move(dataset));
}

}  // namespace capstan::training
