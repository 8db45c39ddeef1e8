#include "capstan/job/task_factory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::HasSubstr;

TEST(TaskFactory, MakesTheNetworkForTheData) {
  config::JobConfig config;
  config.dataset = "synthetic:1x28x28:10:64";
  const auto task = make_task(config);
  EXPECT_EQ(task.training_samples(), 64u);
  EXPECT_EQ(task.layout.parameters(), 431080u) << "LeNet";
  EXPECT_EQ(task.buffer_layout.size(), 0u);
}

struct Wrong {
  std::function<void(config::JobConfig&)> change;
  std::string says;
};

TEST(TaskFactory, WrongInputIsAnErrorWithTheRemedy) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "wrong.toml", "workers = 2\n");
  const std::vector<Wrong> cases = {
      {[](auto& c) { c.network = "lenett"; }, "lenet"},
      {[](auto& c) { c.dataset = "digit"; }, "digits"},
      {[](auto& c) { c.dataset = "mnist"; }, "--data-dir"},
      {[](auto& c) { c.dataset = "cifar10", c.data_dir = "/nowhere"; }, "capstan data get cifar10"},
      {[](auto& c) { c.augment = "resized-crop"; }, "crop-flip"},
      {[](auto& c) { c.dataset = "synthetic:3x32x32:10"; }, "1x28x28"},
      {[](auto& c) { c.network = "resnet18", c.batch_size = 1; }, "--batch-size must be at least 2"},
      {[](auto& c) { c.network = "vgg16"; }, "at least 32x32"},
      {[](auto& c) { c.num_classes = 9; }, "the dataset has 10"},
      {[&](auto& c) { c.weights = folder / "wrong.toml"; }, "wrong.toml"},
  };
  for (const auto& wrong : cases) {
    config::JobConfig config;
    wrong.change(config);
    try {
      (void)make_task(config);
      ADD_FAILURE() << "accepted: " << wrong.says;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(wrong.says));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(TaskFactory, ATestTaskNeedsNoTrainingSet) {
  config::JobConfig config;
  config.dataset = "synthetic:1x28x28:10:64";
  EXPECT_GT(make_test_task(config).task->split(Split::kTest).samples, 0u);
}

TEST(TaskFactory, AMissingDeviceIsRejected) {
  EXPECT_NO_THROW(check_device("cpu"));
  EXPECT_THROW(check_device("cuda"), UserError);
}

}  // namespace
}  // namespace capstan::job
