#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "capstan/data/dataset.h"
#include "capstan/models/model.h"

namespace capstan::training {

// The network of a job.
struct NetworkOptions {
  std::string name = "lenet";
  std::int64_t classes = 0;            // 0: the dataset's
  std::uint64_t init_seed = 1;         // of the initial weights
  std::filesystem::path weights = {};  // a PyTorch state dict with the initial weights; empty for none
};

// Makes the network for a dataset's images. Throws UserError if it is unknown, does not fit the dataset or
// the file of weights, or cannot be trained with batches of `batch` samples.
std::unique_ptr<models::Model> make_network(const NetworkOptions& options, const data::SampleShape& shape,
                                            std::uint64_t batch);

}  // namespace capstan::training
