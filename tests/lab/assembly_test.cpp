#include "capstan/lab/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/builtin.h"
#include "capstan/user_error.h"

#include "lab/small_plan.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Assembly : public ::testing::Test {
 protected:
  std::unique_ptr<Task> task() const { return make_task(plan_, registry_); }

  testing::TemporaryFolder folder_;
  Registry registry_ = builtin();
  Plan plan_ = testing::small_plan(folder_.path());
};

// Images of noise with one of three classes.
class Noise final : public Data {
 public:
  std::int64_t size() const override { return 12; }
  Sample item(std::int64_t index) override {
    return {at::full({1, 28, 28}, static_cast<float>(index) / 12), at::scalar_tensor(index % 3, at::kLong)};
  }
};

class Flat final : public Model {
 public:
  Flat() { weight_ = register_parameter("weight", at::ones({784, 10})); }
  at::Tensor forward(const at::Tensor& input) override { return at::matmul(input.flatten(1), weight_); }

 private:
  at::Tensor weight_;
};

TEST_F(Assembly, AnyDataFitsAnyModel) {
  EXPECT_EQ(task()->parameters().size(), 7u);
  EXPECT_TRUE(task()->parameters()[0].sparse);
  // A dataset of Capstan and a model of a plug-in.
  registry_.models["Flat"] = [](const Configuration&) { return std::make_shared<Flat>(); };
  plan_.data = "digits";
  plan_.model = "Flat";
  EXPECT_EQ(task()->split(Split::kTrain).samples, 1438u);
  const std::uint32_t samples[] = {3, 5};
  const auto made = task();
  EXPECT_GT(made->loss(0, made->batch(Split::kTrain, {0, samples})).item<float>(), 0);
  // Data of a plug-in and a network of Capstan.
  registry_.data["Noise"] = [](const Configuration&, std::uint64_t) { return std::make_unique<Noise>(); };
  plan_.data = "Noise";
  plan_.model = "lenet";
  const auto lenet = task();
  EXPECT_EQ(lenet->split(Split::kTrain).samples, 12u);
  const auto batch = lenet->batch(Split::kTrain, {0, samples});
  EXPECT_EQ(batch.target.data_ptr<std::int64_t>()[1], 2);
  EXPECT_NEAR(batch.input.index({1}).max().item<float>(), 5.0 / 12, 1e-6);
  // A network and a dataset, and a task, all of Capstan.
  plan_.data = "digits";
  plan_.model = "mlp";
  EXPECT_EQ(task()->split(Split::kTrain).samples, 1438u);
  plan_.model = "char-lm";
  plan_.data.clear();
  EXPECT_GT(task()->split(Split::kTrain).samples, 0u);
}

TEST_F(Assembly, EveryProcessBeginsWithTheSameWeights) {
  const auto a = task(), b = task();
  for (std::size_t i = 0; i < a->parameters().size(); ++i)
    EXPECT_TRUE(a->parameters()[i].tensor.equal(b->parameters()[i].tensor));
  plan_.seed = 2;
  EXPECT_FALSE(a->parameters()[0].tensor.equal(task()->parameters()[0].tensor));
}

TEST_F(Assembly, StepsCanBeLimited) {
  plan_.max_steps = 2;
  plan_.trainers = 3;
  EXPECT_EQ(task()->split(Split::kTrain).samples, 24u);
  plan_.max_steps = 1000;
  EXPECT_EQ(task()->split(Split::kTrain).samples, 52u);
}

TEST_F(Assembly, AModelThatDoesNotFitTheDataIsSaidWithTheShapes) {
  plan_.model = "lenet";
  EXPECT_THAT([&] { task(); }, ThrowsMessage<UserError>(HasSubstr("6 Long")));
}

TEST_F(Assembly, ANameThatCapstanHasIsRefused) {
  Registry own;
  own.data["DummyData"] = registry_.data["DummyData"];
  EXPECT_THAT([&] { with_builtin(own); },
              ThrowsMessage<UserError>(HasSubstr("the data DummyData is one of Capstan's")));
}

TEST_F(Assembly, ValuesOfATrainerAreRead) {
  testing::write_file(
      folder_ / "trainers.json",
      R"({"Old": {"trainer_class": "DdpTrainer", "configurations": {"ps_name": "x", "epochs": 10}},
                          "Cuda": {"trainer_class": "DdpTrainer", "configurations": {"use_cuda_rpc": true}},
                          "Wrong": {"trainer_class": "DdpTrainer", "configurations": {"bucket_cap": 3}},
                          "Unknown": {"trainer_class": "Ddp", "configurations": {}}})");
  plan_.trainer_config = folder_ / "trainers.json";
  MetricsLogger metrics;
  TrainerContext context;
  context.metrics = &metrics;
  context.hook = "rpc_hook";
  const auto make = [&](const char* name) {
    plan_.trainer = name;
    return make_trainer(plan_, registry_, context);
  };
  EXPECT_NE(make("Old"), nullptr);
  EXPECT_THAT([&] { make("Cuda"); }, ThrowsMessage<UserError>(AllOf(HasSubstr("trainers.json: Cuda"),
                                                                    HasSubstr("it needs CUDA devices"))));
  EXPECT_THAT([&] { make("Wrong"); }, ThrowsMessage<UserError>(HasSubstr("Wrong: bucket_cap is unknown")));
  EXPECT_THAT([&] { make("Unknown"); }, ThrowsMessage<UserError>(HasSubstr("there is no trainer Unknown")));
}

}  // namespace
}  // namespace capstan::lab
