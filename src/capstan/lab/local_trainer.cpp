#include "capstan/lab/local_trainer.h"

#include <ATen/core/grad_mode.h>

namespace capstan::lab {
namespace {

class LocalTrainer final : public Trainer {
 public:
  using Trainer::Trainer;

  void train(Task& task) override {
    run_steps(task, [&](const Step& step, const Batch& batch) {
      for (const auto& parameter : task.parameters()) parameter.tensor.mutable_grad().reset();
      const auto loss = forward(task, step, batch);
      backward(step, loss);
      update(step, [&] { apply(task); });
      return loss.item<double>();
    });
  }

 private:
  void apply(const Task& task) const {
    const at::NoGradGuard no_grad;
    for (const auto& parameter : task.parameters())
      if (const auto& gradient = parameter.tensor.grad(); gradient.defined())
        parameter.tensor.add_(gradient, -context().learning_rate);
  }
};

}  // namespace

std::unique_ptr<Trainer> make_local_trainer(const Configuration&, const TrainerContext& context) {
  return std::make_unique<LocalTrainer>(context);
}

}  // namespace capstan::lab
