// Every optimizer against PyTorch's own, step by step.
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/optim.h>

#include "capstan/optimizer/optimizer.h"

namespace capstan::optimizer {
namespace {

using Parameters = std::vector<torch::Tensor>;

std::unique_ptr<torch::optim::Optimizer> make_torch(const Options& o, const Parameters& p) {
  switch (o.kind) {
    case Kind::kSgd:
      return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(o.lr)
                                                        .momentum(o.momentum)
                                                        .dampening(o.dampening)
                                                        .weight_decay(o.weight_decay)
                                                        .nesterov(o.nesterov));
    case Kind::kAdam:
      return std::make_unique<torch::optim::Adam>(
          p,
          torch::optim::AdamOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.eps).weight_decay(o.weight_decay));
    case Kind::kAdamW:
      return std::make_unique<torch::optim::AdamW>(
          p,
          torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).eps(o.eps).weight_decay(o.weight_decay));
    case Kind::kAdagrad:
      return std::make_unique<torch::optim::Adagrad>(
          p, torch::optim::AdagradOptions(o.lr).lr_decay(o.lr_decay).eps(o.eps).weight_decay(o.weight_decay));
    case Kind::kRmsProp:
      return std::make_unique<torch::optim::RMSprop>(p, torch::optim::RMSpropOptions(o.lr)
                                                            .alpha(o.alpha)
                                                            .eps(o.eps)
                                                            .weight_decay(o.weight_decay)
                                                            .momentum(o.momentum)
                                                            .centered(o.centered));
    case Kind::kNone:
    case Kind::kSparseAdam:  // libtorch has none: rows_test.cpp
      break;
  }
  return nullptr;
}

std::string describe(const Options& o) {
  std::string text(name(o.kind));
  const auto add = [&](const char* option, double value) {
    text += ' ' + std::string(option) + '=' + std::to_string(value);
  };
  add("lr", o.lr), add("wd", o.weight_decay), add("momentum", o.momentum), add("dampening", o.dampening);
  add("nesterov", o.nesterov), add("beta1", o.beta1), add("beta2", o.beta2), add("lr_decay", o.lr_decay);
  add("alpha", o.alpha), add("centered", o.centered);
  return text;
}

using Factor = std::function<double(std::uint64_t step)>;

double one(std::uint64_t) {
  return 1;
}

// 20 steps on random tensors; every tenth gradient is zero. `rate` may change each update's learning rate;
// `scheduled` is the schedule's factor, computed independently.
void expect_parity(const Options& options, std::int64_t size, const Factor& rate = one,
                   const Schedule& schedule = {}, const Factor& scheduled = one) {
  SCOPED_TRACE(describe(options) + ", size " + std::to_string(size));
  torch::manual_seed(size);
  const auto parameter = torch::randn({size}).requires_grad_();
  const Parameters parameters = {parameter};
  const auto reference = make_torch(options, parameters);

  const Optimizer ours(options, schedule);
  const auto count = static_cast<std::size_t>(size);
  const float* start = parameter.data_ptr<float>();
  std::vector<float> weights(start, start + size);
  std::vector<std::vector<float>> arrays(static_cast<std::size_t>(ours.state_tensors()),
                                         std::vector<float>(count));
  std::vector<float*> state;
  for (auto& a : arrays) state.push_back(a.data());

  for (std::uint64_t step = 0; step < 20; ++step) {
    auto gradient = torch::randn({size}) * (torch::rand({size}) > 0.1);
    parameter.mutable_grad() = gradient;
    reference->param_groups()[0].options().set_lr(options.lr * scheduled(step) * rate(step));
    reference->step();
    const Contribution contribution{gradient.data_ptr<float>(), 1};
    ours.update(Version{step}, weights, state, {&contribution, 1}, rate(step));

    const float* expected = parameter.data_ptr<float>();
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_NEAR(weights[i], expected[i], 1e-6 * std::max(1.0f, std::abs(expected[i])))
          << "step " << step << ", element " << i;
  }
}

void expect_parity_at_all_sizes(const Options& options) {
  for (std::int64_t size : {1, 7, 64, 1000, 65537 + 3}) expect_parity(options, size);
}

TEST(OptimizerParity, Sgd) {
  for (double wd : {0.0, 0.05})
    for (double momentum : {0.0, 0.9})
      for (double dampening : {0.0, 0.3})
        expect_parity_at_all_sizes(
            {.lr = 0.05, .weight_decay = wd, .momentum = momentum, .dampening = dampening});
}

TEST(OptimizerParity, SgdNesterov) {
  for (double wd : {0.0, 0.05})
    for (double momentum : {0.5, 0.9})
      expect_parity_at_all_sizes({.lr = 0.05, .weight_decay = wd, .momentum = momentum, .nesterov = true});
}

TEST(OptimizerParity, AdamAndAdamW) {
  for (Kind kind : {Kind::kAdam, Kind::kAdamW})
    for (double wd : {0.0, 0.1})
      for (double beta1 : {0.0, 0.9})
        for (double beta2 : {0.9, 0.999})
          expect_parity_at_all_sizes(
              {.kind = kind, .lr = 0.01, .weight_decay = wd, .beta1 = beta1, .beta2 = beta2});
}

TEST(OptimizerParity, Adagrad) {
  for (double wd : {0.0, 0.1})
    for (double lr_decay : {0.0, 0.2}) {
      auto options = defaults(Kind::kAdagrad);
      options.weight_decay = wd;
      options.lr_decay = lr_decay;
      expect_parity_at_all_sizes(options);
    }
}

TEST(OptimizerParity, RmsProp) {
  for (double wd : {0.0, 0.1})
    for (double momentum : {0.0, 0.9})
      for (double alpha : {0.9, 0.99})
        for (bool centered : {false, true})
          expect_parity_at_all_sizes({.kind = Kind::kRmsProp,
                                      .lr = 0.002,
                                      .weight_decay = wd,
                                      .momentum = momentum,
                                      .alpha = alpha,
                                      .centered = centered});
}

TEST(OptimizerParity, LearningRateSchedule) {
  // Three updates of warm-up, then halved after every four.
  constexpr double kFactors[20] = {1.0 / 3, 2.0 / 3, 1,    1,    1,    1,     1,     0.5,   0.5,   0.5,
                                   0.5,     0.25,    0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0.0625};
  for (Kind kind : {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kAdagrad, Kind::kRmsProp})
    expect_parity(defaults(kind), 1000, one, Schedule::parse("step:4:0.5", 3, 0),
                  [&](auto step) { return kFactors[step]; });
}

TEST(OptimizerParity, RateOfOneUpdate) {
  for (Kind kind : {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kAdagrad, Kind::kRmsProp}) {
    auto options = defaults(kind);
    options.weight_decay = 0.01;
    if (kind == Kind::kSgd) options.momentum = 0.9;
    expect_parity(options, 1000, [](auto step) { return 1.0 / (1.0 + static_cast<double>(step % 4)); });
  }
}

}  // namespace
}  // namespace capstan::optimizer
