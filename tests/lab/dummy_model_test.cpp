#include "capstan/lab/dummy_model.h"

#include <ATen/ops/_unique.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Configuration values(std::int64_t rows, std::int64_t columns, std::int64_t layers, bool sparse,
                     std::int64_t output) {
  return {"f: DummyModel",
          {{"num_embeddings", rows},
           {"embedding_dim", columns},
           {"dense_input_size", columns},
           {"dense_output_size", output},
           {"dense_layers_count", layers},
           {"sparse", sparse}}};
}

at::Tensor bag(std::int64_t first, std::int64_t second) {
  return at::tensor({first, second}, at::kLong).view({1, 2});
}

TEST(DummyModel, HasTheSizeOfThePredecessors) {
  const auto model = make_dummy_model(values(1024, 1024, 8, true, 1024));
  std::int64_t elements = 0;
  for (const auto& parameter : model->parameters()) elements += parameter.numel();
  EXPECT_EQ(elements, 9'445'376);  // 1024 x 1024, and eight times 1024 x 1024 + 1024
}

// Plain arithmetic: with weights of 1 and biases of 0, a bag's mean goes through two layers of three inputs.
TEST(DummyModel, IsTheMeanOfABagThenLinearLayersThenASoftmax) {
  const auto model = make_dummy_model(values(4, 3, 2, false, 3));
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    if (parameter.key().ends_with("bias")) {
      parameter.value().copy_(at::tensor({0.0f, 0.0f, parameter.key() == "dense.1.bias" ? 1.0f : 0.0f}));
    } else {
      parameter.value().fill_(1);
    }
  }
  const auto output = model->forward(bag(0, 3));
  // All three outputs are 9 before the last bias, which adds 1 to the third.
  const double e = std::exp(1.0);
  EXPECT_NEAR(output[0][0].item<double>(), 1 / (2 + e), 1e-6);
  EXPECT_NEAR(output[0][2].item<double>(), e / (2 + e), 1e-6);
}

TEST(DummyModel, SparseDecidesAboutTheGradientOfTheEmbedding) {
  for (const bool sparse : {false, true}) {
    const auto model = make_dummy_model(values(10, 4, 1, sparse, 4));
    model->forward(bag(1, 2)).pow(2).sum().backward();
    EXPECT_EQ(model->named_parameters()["embedding.weight"].grad().is_sparse(), sparse);
  }
}

// Ids repeat within a bag and among bags; the reference is libtorch's dense gradient.
TEST(DummyModel, SparseAndDenseGradientsAreEqual) {
  torch::manual_seed(1);
  const auto dense = make_dummy_model(values(50, 7, 1, false, 7));
  const auto sparse = make_dummy_model(values(50, 7, 1, true, 7));
  const at::NoGradGuard no_grad;
  for (const auto& parameter : dense->named_parameters())
    sparse->named_parameters()[parameter.key()].copy_(parameter.value());
  const auto ids = at::randint(0, 20, {6, 30}, at::kLong).mul_(2);
  const auto target = at::randint(0, 7, {6}, at::kLong);
  {
    const at::AutoGradMode grad(true);
    for (const auto& model : {dense, sparse}) at::nll_loss(model->forward(ids), target).backward();
  }
  EXPECT_TRUE(at::equal(dense->forward(ids), sparse->forward(ids)));
  const auto gradient = sparse->named_parameters()["embedding.weight"].grad();
  // Every row that occurs, once, in order.
  EXPECT_TRUE(at::equal(gradient._indices()[0], std::get<0>(at::_unique(ids))));
  EXPECT_TRUE(
      at::allclose(gradient.to_dense(), dense->named_parameters()["embedding.weight"].grad(), 1e-5, 1e-8));
}

TEST(DummyModel, IdsBeyondTheEmbeddingAreAnError) {
  const auto model = make_dummy_model(values(10, 4, 1, true, 4));
  EXPECT_ANY_THROW(model->forward(bag(1, 10)));
  EXPECT_ANY_THROW(model->forward(bag(-1, 1)));
}

TEST(DummyModel, SizesThatDoNotFitAreOneLine) {
  const auto expect_error = [](const Configuration& bad, const std::string& what) {
    EXPECT_THAT([&] { make_dummy_model(bad); }, ThrowsMessage<UserError>(HasSubstr(what)));
  };
  expect_error(values(10, 4, 2, false, 5), "dense_output_size is 5, but dense_input_size is 4");
  const Configuration other("f: M", {{"num_embeddings", std::int64_t{10}},
                                     {"embedding_dim", std::int64_t{3}},
                                     {"dense_input_size", std::int64_t{4}},
                                     {"dense_output_size", std::int64_t{4}},
                                     {"dense_layers_count", std::int64_t{1}},
                                     {"sparse", false}});
  expect_error(other, "f: M: dense_input_size is 4, but embedding_dim is 3");
  EXPECT_NO_THROW(make_dummy_model(values(10, 4, 1, false, 5)));
}

}  // namespace
}  // namespace capstan::lab
