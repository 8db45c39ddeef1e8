#include "capstan/training/objective.h"

#include <algorithm>

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <fmt/format.h>

#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

using Kind = Objective::Kind;

struct Name {
  std::string_view name;
  Kind kind;
};
constexpr Name kNames[] = {{"cross-entropy", Kind::kCrossEntropy},
                           {"bce", Kind::kBinaryCrossEntropy},
                           {"mse", Kind::kSquared},
                           {"l1", Kind::kAbsolute},
                           {"smooth-l1", Kind::kSmoothAbsolute}};

std::string_view name_of(Kind kind) {
  return std::ranges::find(kNames, kind, &Name::kind)->name;
}

std::string describe(const data::SampleShape& shape) {
  return shape.has_classes() ? fmt::format("one of {} classes", shape.classes)
                             : fmt::format("{} numbers", shape_text(shape.target));
}

Kind parse(std::string_view name, const data::SampleShape& shape) {
  if (name == "auto") return shape.has_classes() ? Kind::kCrossEntropy : Kind::kSquared;
  const auto found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames)) throw UserError(fmt::format("--loss {}: unknown", name));
  const bool takes_classes =
      found->kind == Kind::kCrossEntropy || (found->kind == Kind::kBinaryCrossEntropy && shape.classes == 2);
  const bool takes_numbers = found->kind != Kind::kCrossEntropy;
  if (shape.has_classes() ? takes_classes : takes_numbers) return found->kind;
  throw UserError(fmt::format("--loss {}: does not fit the target, which is {}: use {}", name,
                              describe(shape),
                              !shape.has_classes() ? "mse, l1, smooth-l1 or bce"
                              : shape.classes == 2 ? "cross-entropy or bce"
                                                   : "cross-entropy"));
}

MetricSum sum_of(const at::Tensor& mean, double count) {
  return {mean.item<double>() * count, count};
}

}  // namespace

Objective::Objective(std::string_view name, const data::SampleShape& shape)
    : shape_(shape), kind_(parse(name, shape)) {}

// As probabilities: PyTorch computes a negative loss for others.
void Objective::check_targets(const data::SampleSource& source, std::string_view part) const {
  if (kind_ != Kind::kBinaryCrossEntropy || shape_.has_classes()) return;
  std::vector<float> target(shape_.target_elements());
  for (std::size_t sample = 0; sample < source.count(); ++sample) {
    source.write_target(sample, target.data());
    const auto bad = std::ranges::find_if_not(target, [](float v) { return v >= 0 && v <= 1; });
    if (bad != target.end())
      throw UserError(
          fmt::format("--loss bce: the target of sample {} of the {} part has {}; its numbers must be from 0 "
                      "to 1: for others use mse, l1 or smooth-l1",
                      sample, part, *bad));
  }
}

void Objective::check_output(const at::Tensor& output, std::int64_t samples, const std::string& model) const {
  const auto fail = [&](const std::string& needed) {
    throw UserError(fmt::format("{} returns a tensor of {} for {} samples; --loss {} needs {}", model,
                                shape_text(output.sizes().vec()), samples, name_of(kind_), needed));
  };
  if (!output.is_floating_point()) fail("floats");
  if (kind_ == Kind::kCrossEntropy) {
    if (output.dim() != 2 || output.size(0) != samples || output.size(1) < shape_.classes)
      fail(fmt::format("{}xC with a column for each of {} classes", samples, shape_.classes));
    return;
  }
  const auto elements = shape_.has_classes() ? 1 : static_cast<std::int64_t>(shape_.target_elements());
  if (output.dim() == 0 || output.size(0) != samples || output.numel() != samples * elements)
    fail(fmt::format("{}x{}, the shape of the target", samples,
                     shape_.has_classes() ? "1" : shape_text(shape_.target)));
}

// The target as floats of the output's shape, which has as many elements.
at::Tensor Objective::fitted(const at::Tensor& output, const at::Tensor& target) const {
  return target.to(at::kFloat).reshape(output.sizes());
}

at::Tensor Objective::loss(const at::Tensor& output, const at::Tensor& target) const {
  switch (kind_) {
    case Kind::kCrossEntropy:
      return at::cross_entropy_loss(output, target);
    case Kind::kBinaryCrossEntropy:
      return at::binary_cross_entropy_with_logits(output, fitted(output, target));
    case Kind::kSquared:
      return at::mse_loss(output, fitted(output, target));
    case Kind::kAbsolute:
      return at::l1_loss(output, fitted(output, target));
    case Kind::kSmoothAbsolute:
      return at::smooth_l1_loss(output, fitted(output, target));
  }
  return {};
}

std::vector<Metric> Objective::metrics() const {
  const Metric accuracy{"accuracy", Metric::Better::kHigher, Metric::Of::kMean, true}, loss{"loss"};
  switch (kind_) {
    case Kind::kCrossEntropy:
      return {accuracy, loss, {"top5", Metric::Better::kHigher, Metric::Of::kMean, true}};
    case Kind::kBinaryCrossEntropy:
      return {accuracy, loss};
    default:
      return {{"rmse", Metric::Better::kLower, Metric::Of::kRoot}, {"mae"}, loss};
  }
}

std::vector<MetricSum> Objective::evaluate(const at::Tensor& output, const at::Tensor& target) const {
  const auto samples = static_cast<double>(output.size(0));
  const auto mean_loss = sum_of(loss(output, target), samples);
  if (kind_ == Kind::kCrossEntropy) {
    const auto likeliest = std::get<1>(output.topk(std::min<std::int64_t>(5, output.size(1)), 1));
    const auto right = output.argmax(1).eq(target).sum().item<double>();
    return {{right, samples}, mean_loss, {likeliest.eq(target.unsqueeze(1)).sum().item<double>(), samples}};
  }
  const auto wanted = fitted(output, target);
  const auto elements = static_cast<double>(output.numel());
  if (kind_ == Kind::kBinaryCrossEntropy)
    return {{output.gt(0).eq(wanted.gt(0.5)).sum().item<double>(), elements}, mean_loss};
  return {sum_of(at::mse_loss(output, wanted), elements), sum_of(at::l1_loss(output, wanted), elements),
          mean_loss};
}

}  // namespace capstan::training
