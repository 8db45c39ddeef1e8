#include "capstan/lab/plugin_task.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/builtin.h"
#include "capstan/lab/dummy_data.h"
#include "capstan/lab/dummy_model.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<Data> data(std::int64_t bound) {
  return make_dummy_data({"f",
                          {{"max_val", bound},
                           {"sample_count", std::int64_t{40}},
                           {"sample_length", std::int64_t{6}},
                           {"sparsity_percentage", std::int64_t{20}}}},
                         1);
}

std::shared_ptr<Model> model(std::int64_t rows, std::int64_t classes) {
  return make_dummy_model({"f",
                           {{"num_embeddings", rows},
                            {"embedding_dim", std::int64_t{8}},
                            {"dense_input_size", std::int64_t{8}},
                            {"dense_output_size", classes},
                            {"dense_layers_count", std::int64_t{1}},
                            {"sparse", false}}});
}

TEST(PluginTask, LossIsTheCriterionOfTheModelsOutput) {
  const auto net = model(20, 20);
  PluginTask task(data(20), net, builtin().criteria.at("cel"));
  const std::uint32_t samples[] = {5, 2};
  const auto batch = task.batch(Split::kTrain, {0, samples});
  const auto expected = at::cross_entropy_loss(net->forward(batch.input), batch.target);
  EXPECT_EQ(task.loss(0, batch).item<float>(), expected.item<float>());
  EXPECT_EQ(task.split(Split::kTrain).samples, 40u);
  EXPECT_EQ(batch.samples, 2u);
  EXPECT_TRUE(net->is_training());
}

TEST(PluginTask, PartsThatDoNotFitAreOneLineWithTheirShapes) {
  EXPECT_THAT([] { PluginTask(data(50), model(20, 50), builtin().criteria.at("cel")); },
              ThrowsMessage<UserError>(HasSubstr("the model does not take the data, an input of 8x6 Long")));
  EXPECT_THAT(
      [] { PluginTask(data(50), model(50, 3), builtin().criteria.at("cel")); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("the model's output of 8x3 Float and a target of 8 Long"),
                                     HasSubstr("out of bounds"))));
}

}  // namespace
}  // namespace capstan::lab
