#pragma once

#include <ATen/core/Tensor.h>

namespace capstan::lab {

// The mean of the weight's rows of each bag of ids ([bags, ids] of int64), as torch::nn::EmbeddingBag with
// `sparse` computes it. The weight's gradient has each row once: libtorch's has a row for every id of the
// batch, 128 MiB for 32 bags of 1,024 ids and 1,024 columns, which must be added up before it can be sent.
at::Tensor mean_rows(const at::Tensor& weight, const at::Tensor& ids);

}  // namespace capstan::lab
