#include "capstan/models/model.h"

#include <ATen/ops/cross_entropy_loss.h>

namespace capstan::models {

at::Tensor Model::loss(const at::Tensor& images, const at::Tensor& labels) {
  return at::cross_entropy_loss(forward(images), labels);
}

}  // namespace capstan::models
