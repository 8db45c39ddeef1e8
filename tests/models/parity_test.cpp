// Every network against PyTorch with the same weights, buffers and images: in 64 bits, in training and in
// evaluation mode. make_networks.py, which has the same formulas, writes tests/reference/networks.

#include <algorithm>
#include <climits>
#include <cmath>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "capstan/layouts/networks.h"
#include "capstan/models/registry.h"

namespace capstan::models {
namespace {

// Element i of tensor number `tensor`, in [-1, 1).
double drawn(std::uint64_t tensor, std::uint64_t i) {
  auto z = (i + (tensor << 32)) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
  z = z ^ (z >> 32);
  return static_cast<double>(z >> 40) / 8388608.0 - 1;
}

// A new row-major array of this shape: offset + scale · drawn.
at::Tensor drawn(std::uint64_t tensor, at::IntArrayRef dims, double offset, double scale) {
  auto values = at::empty(dims, at::kDouble);
  auto* out = values.data_ptr<double>();
  const auto count = static_cast<std::uint64_t>(values.numel());
  for (std::uint64_t i = 0; i < count; ++i) out[i] = offset + scale * drawn(tensor, i);
  return values;
}

at::Tensor filled(std::uint64_t index, const NamedTensor& t, double norm_scale) {
  const auto dims = t.tensor.sizes();
  if (dims.size() > 1)
    return drawn(index, dims, 0, std::sqrt(6.0 / static_cast<double>(t.tensor.numel() / dims[0])));
  if (t.name.ends_with("num_batches_tracked")) return at::zeros({}, at::kLong);
  if (t.name.ends_with("running_var")) return drawn(index, dims, 1, 0.5);
  if (t.name.ends_with("weight")) return drawn(index, dims, norm_scale, 0.2 * norm_scale);
  return drawn(index, dims, 0, 0.1);
}

void fill_parameters(Model& model, double norm_scale) {
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const auto& p = model.parameters()[i];
    p.tensor.set_data(filled(i, p, norm_scale));
  }
}

void fill_buffers(Model& model, double norm_scale) {
  for (std::size_t i = 0; i < model.buffers().size(); ++i) {
    const auto& b = model.buffers()[i];
    b.tensor.set_data(filled(model.parameters().size() + i, b, norm_scale));
  }
}

void expect_near(double ours, double expected, double relative, const std::string& what, double noise = 0) {
  EXPECT_LE(std::abs(ours - expected), relative * std::abs(expected) + noise)
      << what << ": " << ours << " instead of " << expected;
}

class Parity : public testing::TestWithParam<std::string_view> {
 protected:
  // Returning the memory of large arrays to the system would take longer than computing.
  static void SetUpTestSuite() {
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  }

  void SetUp() override {
    std::ifstream file(CAPSTAN_SOURCE_DIR "/tests/reference/networks/" + std::string(GetParam()) + ".json");
    ASSERT_TRUE(file) << "make_networks.py has not been run for this network";
    reference_ = nlohmann::json::parse(file);
    const std::vector<std::int64_t> size = reference_["image"];
    ModelOptions options{size[0], size[1], size[2], reference_["classes"], 1, 0.0};
    model_ = make(std::string(GetParam()), options);
    const std::int64_t batch = reference_["batch"];
    images_ =
        drawn(1 << 20, {batch, size[0], size[1], size[2]}, 0, 1).contiguous(at::MemoryFormat::ChannelsLast);
    labels_ = (at::arange(batch, at::kLong) * 3 + 1) % options.classes;
    scale_ = reference_["norm_scale"];
    fill_parameters(*model_, scale_);
  }

  void compare(const std::string& mode) {
    const auto& expected = reference_[mode];
    model_->train(mode == "train");
    fill_buffers(*model_, scale_);
    {
      const at::NoGradGuard no_grad;
      const auto logits = model_->forward(images_).contiguous();
      ASSERT_EQ(logits.numel(), expected["logits"].size());
      // Relative to the largest, since single values may be close to zero.
      const double most = logits.abs().max().item<double>();
      for (std::int64_t i = 0; i < logits.numel(); ++i)
        EXPECT_NEAR(logits.data_ptr<double>()[i], expected["logits"][i], 1e-6 * most)
            << mode << " logit " << i;
    }
    fill_buffers(*model_, scale_);
    for (const auto& p : model_->parameters()) p.tensor.mutable_grad().reset();
    const auto loss = model_->loss(images_, labels_);
    expect_near(loss.item<double>(), expected["loss"], 1e-6, mode + " loss");
    if (!expected.contains("gradients")) return;
    loss.backward();
    // The gradient of a bias before a batch norm is zero except for rounding.
    const double noise = 1e-12 * std::ranges::max(expected["gradients"].get<std::vector<double>>());
    ASSERT_EQ(model_->parameters().size(), expected["gradients"].size());
    for (std::size_t i = 0; i < model_->parameters().size(); ++i) {
      const auto& p = model_->parameters()[i];
      const auto norm = p.tensor.grad().defined() ? p.tensor.grad().norm().item<double>() : 0;
      expect_near(norm, expected["gradients"][i], 1e-4, mode + " gradient of " + p.name, noise);
    }
  }

  nlohmann::json reference_;
  std::unique_ptr<Model> model_;
  at::Tensor images_, labels_;
  double scale_ = 1;
};

TEST_P(Parity, IsPyTorchs) {
  if (HasFatalFailure()) return;
  compare("train");
  const auto& expected = reference_["train"]["buffers"];
  ASSERT_EQ(model_->buffers().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& b = model_->buffers()[i];
    expect_near(b.tensor.to(at::kDouble).norm().item<double>(), expected[i], 1e-6, b.name);
  }
  compare("eval");
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const auto& network : layouts::networks()) all.push_back(network.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Networks, Parity, testing::ValuesIn(names()), [](const auto& network) {
  std::string name(network.param);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace capstan::models
