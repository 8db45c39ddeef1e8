#include "capstan/models/network.h"

#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace capstan::models {
namespace {

at::Tensor started(at::IntArrayRef dims, const Initializer& start) {
  auto weight = at::empty(dims, at::kFloat);
  const auto of_output = static_cast<double>(weight.numel() / dims[0]);
  const auto of_input = static_cast<double>(weight.numel() / dims[1]);
  switch (start.kind) {
    case Initializer::Kind::kUniform: {
      // The same operations as PyTorch's, because the last bit depends on them: Kaiming uniform with a = √5.
      const double deviation = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2))) / std::sqrt(of_output);
      const double bound = std::sqrt(3.0) * deviation;
      return weight.uniform_(-bound, bound);
    }
    case Initializer::Kind::kInputs:
      return weight.normal_(0, std::sqrt(2 / of_output));
    case Initializer::Kind::kOutputs:
      return weight.normal_(0, std::sqrt(2 / of_input));
    case Initializer::Kind::kNormal:
      return weight.normal_(0, start.deviation);
  }
  return weight;
}

}  // namespace

at::Tensor Network::parameter(const std::string& name, at::Tensor values) {
  parameters_.push_back({name, values.requires_grad_()});
  return values;
}

at::Tensor Network::buffer(const std::string& name, at::Tensor values) {
  buffers_.push_back({name, values});
  return values;
}

at::Tensor Network::bias(const std::string& name, std::int64_t out, std::int64_t inputs,
                         const Initializer& start) {
  if (start.zero_bias) return parameter(name, at::zeros({out}));
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return parameter(name, at::empty({out}).uniform_(-bound, bound));
}

Conv Network::conv(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel,
                   const Initializer& start) {
  const std::int64_t dims[] = {out, in / kernel.groups, kernel.size[0], kernel.size[1]};
  return {parameter(name + ".weight", started(dims, start)), {}, kernel};
}

Conv Network::conv_with_bias(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel,
                             const Initializer& start) {
  auto result = conv(name, in, out, kernel, start);
  result.bias = bias(name + ".bias", out, result.weight.numel() / out, start);
  return result;
}

BatchNorm Network::norm(const std::string& name, std::int64_t channels, double eps) {
  const auto weight = parameter(name + ".weight", at::ones({channels}));
  const auto shift = parameter(name + ".bias", at::zeros({channels}));
  return {weight,
          shift,
          buffer(name + ".running_mean", at::zeros({channels})),
          buffer(name + ".running_var", at::ones({channels})),
          buffer(name + ".num_batches_tracked", at::zeros({}, at::kLong)),
          eps,
          &training_};
}

Linear Network::linear(const std::string& name, std::int64_t in, std::int64_t out, const Initializer& start) {
  const std::int64_t dims[] = {out, in};
  const auto weight = parameter(name + ".weight", started(dims, start));
  return {weight, bias(name + ".bias", out, in, start)};
}

}  // namespace capstan::models
