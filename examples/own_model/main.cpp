// Tells apart the points of two interleaved spirals. The model is a torch::nn::Module; Capstan trains it with
// servers and workers.

#include <capstan/torch/run.h>
#include <capstan/torch/tensor_task.h>
#include <torch/torch.h>

namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }
  torch::Tensor forward(const torch::Tensor& points) {
    return last(torch::relu(second(torch::relu(first(points)))));
  }
  torch::nn::Linear first{2, 32}, second{32, 32}, last{32, 2};
};

// Points of both spirals and their classes, 0 and 1. The same in every process: nothing is random.
capstan::TensorData spirals(int points_per_class, double offset) {
  const auto turn = (torch::arange(points_per_class) + offset) / points_per_class;  // from 0 to 1
  const auto angle = 3 * M_PI * turn;
  const auto one = 4 * torch::stack({turn * torch::cos(angle), turn * torch::sin(angle)}, 1);
  const auto classes = torch::arange(2).repeat_interleave(points_per_class);
  return {torch::cat({one, -one}), classes};
}

std::unique_ptr<capstan::Task> make_task(const capstan::TaskOptions&) {
  const auto net = std::make_shared<Net>();
  const auto loss = [net](const torch::Tensor& points, const torch::Tensor& classes) {
    return torch::cross_entropy_loss(net->forward(points), classes);
  };
  const auto accuracy = [net](const torch::Tensor& points, const torch::Tensor& classes) {
    return net->forward(points).argmax(1).eq(classes).to(torch::kFloat).mean();
  };
  const capstan::Metric shown{"accuracy", capstan::Metric::Better::kHigher, capstan::Metric::Of::kMean, true};
  return std::make_unique<capstan::TensorTask>(
      net, spirals(1000, 0), spirals(250, 0.5), loss,
      std::vector<capstan::TensorTask::MeasuredMetric>{{shown, accuracy}});
}

}  // namespace

int main(int argc, char** argv) {
  return capstan::run(
      argc, argv, make_task,
      {.description = "Tells apart the points of two spirals.",
       .defaults = {{"dataset", "spirals"}, {"epochs", "40"}, {"optimizer", "adam"}, {"lr", "0.01"}}});
}
