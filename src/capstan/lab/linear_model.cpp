#include "capstan/lab/linear_model.h"

#include <torch/nn/modules/linear.h>

namespace capstan::lab {
namespace {

constexpr std::int64_t kMostSize = 1 << 24;

// Its parameters have the names of a layer that is a model by itself: weight and bias.
class LinearModel final : public Model {
 public:
  LinearModel(std::int64_t in, std::int64_t out) : layer_(in, out) {
    weight_ = register_parameter("weight", layer_->weight);
    bias_ = register_parameter("bias", layer_->bias);
  }

  at::Tensor forward(const at::Tensor& input) override { return at::linear(input, weight_, bias_); }

 private:
  torch::nn::Linear layer_;
  at::Tensor weight_, bias_;
};

}  // namespace

std::shared_ptr<Model> make_linear_model(const Configuration& values) {
  return std::make_shared<LinearModel>(values.integer("in_features", 1, kMostSize),
                                       values.integer("out_features", 1, kMostSize));
}

}  // namespace capstan::lab
