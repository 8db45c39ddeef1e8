#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/jit/api/module.h>

#include "capstan/training/scripted_task.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/tasks.h"

// TorchScript modules made in a test, and those of tests/reference/modules.
namespace capstan::training {

inline constexpr const char* kImages = "synthetic:1x28x28:10:200";

inline data::Dataset images(const std::string& name = kImages) {
  return data::load({name, "", 1});
}

// A layer with the parameters of a task.
inline torch::jit::Module layer(const std::string& name, const Task& of) {
  torch::jit::Module module(name);
  for (const auto& p : of.parameters())
    if (p.name.starts_with(name + "."))
      module.register_parameter(p.name.substr(name.size() + 1),
                                p.tensor.detach().clone().contiguous().requires_grad_(), false);
  return module;
}

class ScriptedTaskTest : public ::testing::Test {
 protected:
  std::filesystem::path save(const torch::jit::Module& module, const std::string& name = "net.pt") const {
    module.save((folder_ / name).string());
    return folder_ / name;
  }
  // LeNet with the initial weights of the zoo's.
  std::filesystem::path lenet() const {
    const auto zoo = classify(kImages);
    torch::jit::Module net("Net");
    for (const char* name : {"conv1", "conv2", "fc1", "fc2"}) net.register_module(name, layer(name, *zoo));
    net.define(R"(
def forward(self, x):
    x = torch.max_pool2d(torch.relu(torch.conv2d(x, self.conv1.weight, self.conv1.bias)), [2, 2])
    x = torch.max_pool2d(torch.relu(torch.conv2d(x, self.conv2.weight, self.conv2.bias)), [2, 2])
    x = torch.relu(torch.linear(x.flatten(1), self.fc1.weight, self.fc1.bias))
    return torch.linear(x, self.fc2.weight, self.fc2.bias)
)");
    return save(net);
  }
  // A linear layer on three numbers, with attributes that the code may use.
  torch::jit::Module linear(const char* code, at::ScalarType type = at::kFloat,
                            const NamedTensors& buffers = {}) const {
    torch::jit::Module net("Net");
    net.register_parameter("weight", at::ones({1, 3}).to(type).requires_grad_(), false);
    for (const auto& buffer : buffers) net.register_buffer(buffer.name, buffer.tensor);
    net.register_attribute("number", c10::IntType::get(), std::int64_t{0});
    net.register_attribute("numbers", c10::ListType::ofInts(), std::vector<std::int64_t>{});
    net.define(code);
    return net;
  }
  static data::Dataset numbers() {
    const capstan::testing::TemporaryFolder folder;
    std::string text = "a,b,c,y\n";
    for (int i = 0; i < 20; ++i)
      text += std::to_string(i % 3) + "," + std::to_string(i % 5) + "," + std::to_string(i % 7) + "," +
              std::to_string(i % 3 + 2 * (i % 5) - i % 7) + "\n";
    capstan::testing::write_file(folder / "d.csv", text);
    data::DatasetOptions options;
    options.name = "csv:" + (folder / "d.csv").string() + ":target=y";
    options.normalize = data::Normalize::kNone;
    return data::load(options);
  }
  static std::filesystem::path reference(const std::string& file) {
    return std::filesystem::path(CAPSTAN_SOURCE_DIR) / "tests/reference/modules" / file;
  }
  // The state dict of tied.pt, with every name that PyTorch's has: "initial" or "trained".
  static std::map<std::string, std::vector<float>> tied_state(const std::string& when) {
    return nlohmann::json::parse(capstan::testing::contents(reference("tied.json")))[when];
  }
  static void expect_rejected(const ScriptedOptions& options, data::Dataset dataset,
                              const std::string& says) {
    try {
      (void)make_scripted_task(options, std::move(dataset));
      ADD_FAILURE() << "accepted: " << says;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(),
                  ::testing::AllOf(::testing::HasSubstr(says), ::testing::Not(::testing::HasSubstr("\n"))));
    }
  }

  const capstan::testing::TemporaryFolder folder_;
};

inline void expect_close(const Task& a, const Task& b, double tolerance) {
  ASSERT_EQ(a.parameters().size(), b.parameters().size());
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    EXPECT_EQ(a.parameters()[i].name, b.parameters()[i].name);
    const auto ours = a.parameters()[i].tensor.detach(), theirs = b.parameters()[i].tensor.detach();
    EXPECT_LT(((ours - theirs).abs() / theirs.abs().clamp_min(1)).max().item<float>(), tolerance)
        << a.parameters()[i].name;
  }
}

inline std::vector<float> values_of(const at::Tensor& tensor) {
  const auto plain = tensor.detach().to(at::kFloat).contiguous();
  return {plain.data_ptr<float>(), plain.data_ptr<float>() + plain.numel()};
}

}  // namespace capstan::training
