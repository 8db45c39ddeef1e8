#pragma once

#include <memory>

#include "capstan/lab/configuration.h"
#include "capstan/lab/model.h"

namespace capstan::lab {

// A bag of embeddings, linear layers without activations between them, and a softmax. Its values:
// num_embeddings, embedding_dim, dense_input_size, dense_output_size, dense_layers_count, and sparse, whether
// the gradient of the embeddings has only the rows of the batch. Throws UserError for sizes that do not fit
// each other.
std::shared_ptr<Model> make_dummy_model(const Configuration& values);

}  // namespace capstan::lab
