#include "capstan/lab/dummy_model.h"

#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "capstan/lab/mean_rows.h"

namespace capstan::lab {
namespace {

constexpr std::int64_t kMostSize = 1 << 24;

struct Sizes {
  std::int64_t rows, columns, layers, input, output;
};

class DummyModel final : public Model {
 public:
  DummyModel(const Sizes& sizes, bool sparse)
      : sparse_(sparse),
        embedding_(register_module(
            "embedding", torch::nn::EmbeddingBag(
                             torch::nn::EmbeddingBagOptions(sizes.rows, sizes.columns).sparse(sparse)))),
        dense_(register_module("dense", torch::nn::Sequential())) {
    for (std::int64_t i = 0; i < sizes.layers; ++i)
      dense_->push_back(torch::nn::Linear(sizes.input, sizes.output));
  }

  at::Tensor forward(const at::Tensor& input) override {
    const bool bags_of_ids = input.dim() == 2 && input.scalar_type() == at::kLong && input.numel() > 0;
    const auto bags =
        sparse_ && bags_of_ids ? mean_rows(embedding_->weight, input) : embedding_->forward(input);
    return at::softmax(dense_->is_empty() ? bags : dense_->forward(bags), 1);
  }

 private:
  const bool sparse_;
  torch::nn::EmbeddingBag embedding_;
  torch::nn::Sequential dense_;
};

}  // namespace

std::shared_ptr<Model> make_dummy_model(const Configuration& values) {
  const auto size = [&](const char* key) { return values.integer(key, 1, kMostSize); };
  const Sizes sizes{size("num_embeddings"), size("embedding_dim"),
                    values.integer("dense_layers_count", 0, 10'000), size("dense_input_size"),
                    size("dense_output_size")};
  const bool sparse = values.boolean("sparse");
  values.check_all_read();
  if (sizes.layers > 0 && sizes.input != sizes.columns)
    values.fail("dense_input_size", fmt::format("is {}, but embedding_dim is {}; they must be equal",
                                                sizes.input, sizes.columns));
  if (sizes.layers > 1 && sizes.input != sizes.output)
    values.fail("dense_output_size",
                fmt::format("is {}, but dense_input_size is {}; with several layers they "
                            "must be equal",
                            sizes.output, sizes.input));
  return std::make_shared<DummyModel>(sizes, sparse);
}

}  // namespace capstan::lab
