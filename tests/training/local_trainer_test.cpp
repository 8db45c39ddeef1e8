// A worker's local steps against plain libtorch.

#include "capstan/training/local_trainer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "capstan/data/dataset.h"
#include "capstan/models/arena.h"
#include "capstan/training/batch.h"

#include "training/tasks.h"

namespace capstan::training {
namespace {

using Payload = strategy::LocalSteps::Payload;

struct Trained {
  std::unique_ptr<Classification> task = classify("synthetic:1x28x28:10:64", "mlp");
  FlatLayout layout = models::layout_of(task->parameters());
  std::vector<float> start = std::vector<float>(layout.size());

  Trained() { models::copy_parameters_out(task->parameters(), layout, start); }
};

Batch batch(const data::Dataset& dataset, std::uint32_t step) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < 16; ++i) indices.push_back((16 * step + i) % 64);
  return gather(*dataset.train, indices);
}

// The learning rate of step s is halved every two steps, in PyTorch by hand.
TEST(LocalTrainer, TakesTheStepsOfTorchsOptimizer) {
  at::set_num_threads(1);
  const auto dataset = data::load({"synthetic:1x28x28:10:64", "", 1});
  for (const std::string name : {"sgd", "adamw"}) {
    auto options = optimizer::defaults(optimizer::parse_kind(name));
    options.lr = name == "sgd" ? 0.05 : 0.002;
    if (name == "sgd") options.momentum = 0.9;
    Trained trained, plain;
    LocalTrainer trainer(*trained.task, trained.layout, trained.start, options,
                         optimizer::Schedule::parse("step:2:0.5", 0, 0));
    std::vector<at::Tensor> parameters;
    for (const auto& p : plain.task->parameters()) parameters.push_back(p.tensor);
    std::unique_ptr<torch::optim::Optimizer> reference;
    if (name == "sgd") {
      reference =
          std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
    } else {
      reference = std::make_unique<torch::optim::AdamW>(
          parameters, torch::optim::AdamWOptions(0.002).weight_decay(options.weight_decay));
    }
    for (std::uint32_t step = 0; step < 6; ++step) {
      const auto b = batch(dataset, step);
      const auto result = trainer.step(b, step);
      EXPECT_EQ(result.samples, 16u);
      reference->param_groups()[0].options().set_lr(options.lr * std::pow(0.5, step / 2));
      reference->zero_grad();
      const auto loss = plain.task->loss(0, b);
      EXPECT_NEAR(result.loss, loss.item<double>(), 1e-5);
      loss.backward();
      reference->step();
    }
    std::vector<float> ours(trainer.weights().begin(), trainer.weights().end());
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(at::allclose(models::tensor_in(trained.layout, i, ours.data()), parameters[i], 1e-4, 1e-6))
          << name << " " << trained.layout.tensors()[i].name;
  }
}

// A task whose step trains the hidden layer, then the other one.
class TwoPhases final : public Task {
 public:
  explicit TwoPhases(Task& task) : task_(task) {}
  const NamedTensors& parameters() const override { return task_.parameters(); }
  const NamedTensors& buffers() const override { return task_.buffers(); }
  void train(bool on) override { task_.train(on); }
  std::vector<StepPhase> phases() const override { return {{"hidden", {"fc1*"}}, {"output", {"*"}}}; }
  SplitInfo split(Split split) const override { return task_.split(split); }
  Batch batch(Split split, const BatchRequest& request) override { return task_.batch(split, request); }
  at::Tensor loss(std::size_t phase, const Batch& batch) override {
    phases_seen.push_back(phase);
    return task_.loss(0, batch);
  }
  std::vector<Metric> metrics() const override { return task_.metrics(); }
  std::vector<MetricSum> evaluate(const Batch& batch) override { return task_.evaluate(batch); }

  std::vector<std::size_t> phases_seen;

 private:
  Task& task_;
};

// Two phases: Adam on the hidden layer, then SGD on the other, with the weights that the first phase has
// made.
TEST(LocalTrainer, UpdatesTheTensorsOfEachPhaseWithTheirOptimizer) {
  at::set_num_threads(1);
  const auto dataset = data::load({"synthetic:1x28x28:10:64", "", 1});
  const auto spec =
      optimizer::parse_spec("default=sgd:lr=0.05:momentum=0.9,fc1*=adam:lr=0.002", optimizer::defaults);
  Trained trained, plain;
  TwoPhases task(*trained.task);
  LocalTrainer trainer(task, trained.layout, trained.start, spec,
                       optimizer::Schedule::parse("step:2:0.5", 0, 0));
  std::vector<at::Tensor> parameters, hidden, output;
  for (const auto& p : plain.task->parameters()) {
    parameters.push_back(p.tensor);
    (p.name.starts_with("fc1") ? hidden : output).push_back(p.tensor);
  }
  torch::optim::Adam adam(hidden, torch::optim::AdamOptions(0.002));
  torch::optim::SGD sgd(output, torch::optim::SGDOptions(0.05).momentum(0.9));
  for (std::uint32_t step = 0; step < 5; ++step) {
    const auto b = batch(dataset, step);
    adam.param_groups()[0].options().set_lr(0.002 * std::pow(0.5, step / 2));
    sgd.param_groups()[0].options().set_lr(0.05 * std::pow(0.5, step / 2));
    const auto result = trainer.step(b, step);
    double last = 0;
    for (const int phase : {0, 1}) {
      adam.zero_grad();
      sgd.zero_grad();
      const auto loss = plain.task->loss(0, b);
      last = loss.item<double>();
      loss.backward();
      phase == 0 ? adam.step() : sgd.step();
    }
    EXPECT_NEAR(result.loss, last, 1e-5);
  }
  EXPECT_EQ(task.phases_seen, (std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  std::vector<float> ours(trainer.weights().begin(), trainer.weights().end());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(at::allclose(models::tensor_in(trained.layout, i, ours.data()), parameters[i], 1e-4, 1e-6))
        << trained.layout.tensors()[i].name;
}

TEST(LocalTrainer, PushesItsWeightsOrItsDelta) {
  const auto dataset = data::load({"synthetic:1x28x28:10:64", "", 1});
  Trained trained;
  LocalTrainer trainer(*trained.task, trained.layout, trained.start,
                       optimizer::defaults(optimizer::Kind::kSgd), {});
  trainer.step(batch(dataset, 0), 0);
  std::vector<float> out(trained.layout.size(), -1);
  trainer.write_push(Payload::kWeights, trained.start, out);
  const std::vector<float> mine(trainer.weights().begin(), trainer.weights().end());
  EXPECT_EQ(out, mine);
  EXPECT_NE(mine, trained.start);
  trainer.write_push(Payload::kDelta, trained.start, out);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_FLOAT_EQ(out[i], trained.start[i] - mine[i]);
}

TEST(LocalTrainer, MovesToTheServersWeightsFullyOrPartly) {
  Trained trained;
  LocalTrainer trainer(*trained.task, trained.layout, trained.start,
                       optimizer::defaults(optimizer::Kind::kSgd), {});
  const std::vector<float> theirs(trained.layout.size(), 3);
  trainer.move_to(theirs, 0.25);
  for (std::size_t i = 0; i < theirs.size(); ++i)
    ASSERT_NEAR(trainer.weights()[i], trained.start[i] - 0.25 * (trained.start[i] - 3), 1e-6);
  trainer.move_to(theirs, 1);
  EXPECT_EQ(std::vector<float>(trainer.weights().begin(), trainer.weights().end()), theirs);
}

// The model owns its parameters after the trainer is destroyed.
TEST(LocalTrainer, LeavesTheModelItsWeights) {
  Trained trained;
  const std::vector<float> ones(trained.layout.size(), 1);
  {
    LocalTrainer trainer(*trained.task, trained.layout, ones, optimizer::defaults(optimizer::Kind::kSgd), {});
  }
  for (const auto& p : trained.task->parameters()) EXPECT_TRUE((p.tensor == 1).all().item<bool>()) << p.name;
}

}  // namespace
}  // namespace capstan::training
