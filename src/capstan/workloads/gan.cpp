#include "capstan/workloads/gan.h"

#include <utility>

#include <ATen/Context.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cdist.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::workloads {
namespace {

constexpr std::int64_t kKernel = 4, kStride = 2, kPadding = 1;  // halves or doubles the sides of an image
constexpr std::int64_t kReduction = kStride * kStride;          // of the sides, by two convolutions
constexpr double kSlope = 0.2, kDeviation = 0.02;               // as in DCGAN

at::Tensor cross_entropy(const at::Tensor& logits, double target) {
  return at::binary_cross_entropy_with_logits(logits, at::full(logits.sizes(), target));
}

// The mean distance of two different points.
double mean_distance(const at::Tensor& points) {
  const auto count = points.size(0);
  return at::cdist(points, points).sum().item<double>() / static_cast<double>(count * (count - 1));
}

}  // namespace

Gan::Gan(data::Dataset images, const Options& options) : DatasetTask(std::move(images)), options_(options) {
  if (!shape().is_image())
    throw UserError(
        fmt::format("task gan takes images (channels x height x width); the dataset has {} per sample",
                    counted(shape().elements(), "number")));
  if (split(Split::kTest).samples < 2)
    throw UserError("task gan needs at least two test images: the energy distance is one between images");
  if (shape().height() % kReduction != 0 || shape().width() % kReduction != 0)
    throw UserError(
        fmt::format("task gan takes images whose height and width are multiples of {}; those of the "
                    "dataset are {}x{}",
                    kReduction, shape().height(), shape().width()));
  at::manual_seed(options.init_seed);
  const auto inner = options.channels, outer = options.channels / 2;
  const auto features = inner * (shape().height() / kReduction) * (shape().width() / kReduction);
  generator_in_ = layer("generator.in", {features, options.noise}, features);
  generator_middle_ = layer("generator.middle", {inner, outer, kKernel, kKernel}, outer);
  generator_out_ = layer("generator.out", {outer, shape().channels(), kKernel, kKernel}, shape().channels());
  discriminator_in_ = layer("discriminator.in", {outer, shape().channels(), kKernel, kKernel}, outer);
  discriminator_middle_ = layer("discriminator.middle", {inner, outer, kKernel, kKernel}, inner);
  discriminator_out_ = layer("discriminator.out", {1, features}, 1);
}

Gan::Layer Gan::layer(const std::string& name, at::IntArrayRef weight, std::int64_t outputs) {
  Layer made{at::randn(weight).mul_(kDeviation).requires_grad_(), at::zeros({outputs}).requires_grad_()};
  parameters_.push_back({name + ".weight", made.weight});
  parameters_.push_back({name + ".bias", made.bias});
  return made;
}

std::vector<StepPhase> Gan::phases() const {
  return {{"discriminator", {"discriminator.*"}}, {"generator", {"generator.*"}}};
}

at::Tensor Gan::generate(std::int64_t count) const {
  const auto& in = generator_in_;
  auto x = at::relu(at::linear(at::randn({count, options_.noise}), in.weight, in.bias));
  x = x.view({count, options_.channels, shape().height() / kReduction, shape().width() / kReduction});
  const auto doubled = [](const at::Tensor& images, const Layer& layer) {
    return at::conv_transpose2d(images, layer.weight, layer.bias, kStride, kPadding);
  };
  return at::sigmoid(doubled(at::relu(doubled(x, generator_middle_)), generator_out_));
}

at::Tensor Gan::discriminate(const at::Tensor& images) const {
  const auto halved = [](const at::Tensor& x, const Layer& layer) {
    return at::leaky_relu(at::conv2d(x, layer.weight, layer.bias, kStride, kPadding), kSlope);
  };
  const auto x = halved(halved(images, discriminator_in_), discriminator_middle_);
  return at::linear(x.flatten(1), discriminator_out_.weight, discriminator_out_.bias);
}

at::Tensor Gan::loss(std::size_t phase, const Batch& batch) {
  const auto generated = generate(static_cast<std::int64_t>(batch.samples));
  if (phase == 1) return cross_entropy(discriminate(generated), 1);
  return cross_entropy(discriminate(batch.input), 1).add(cross_entropy(discriminate(generated.detach()), 0));
}

std::vector<Metric> Gan::metrics() const {
  return {{"energy_distance"}};
}

// 2 E|X - Y| - E|X - X'| - E|Y - Y'| with X from the dataset, Y generated.
std::vector<MetricSum> Gan::evaluate(const Batch& batch) {
  const auto count = static_cast<std::int64_t>(batch.samples);
  if (count < 2) return {{0, 0}};  // has no two different images
  const auto real = batch.input.flatten(1), generated = generate(count).flatten(1);
  const auto between = at::cdist(real, generated).mean().item<double>();
  const auto distance = 2 * between - mean_distance(real) - mean_distance(generated);
  return {{distance * static_cast<double>(count), static_cast<double>(count)}};
}

}  // namespace capstan::workloads
